#include "plan/layer_growth.h"

#include "plan/clock.h"

namespace snug::plan {
namespace {

// The first layer needs no gradient of its input and the last ends in the head: two layers have
// neither of a layer in the middle, which the third adds.
constexpr int64_t kFewLayers = 3;

JobSize size_with(const TrainingSpec& spec, int64_t layers, const program::Target& target,
                  const Rates& rates) {
  TrainingSpec changed = spec;
  changed.model.num_layers = layers;
  return size_of(plan_training(changed, target), changed, rates);
}

}  // namespace

JobSize size_of(const Job& job, const TrainingSpec& spec, const Rates& rates) {
  JobSize size;
  for (size_t space = 0; space < size.lower_bound_bytes.size(); ++space)
    size.lower_bound_bytes[space] = job.layout.spaces[space].lower_bound_bytes;
  size.step_seconds = step_seconds(job, spec.accumulation, rates, full_load(spec.row_tokens));
  return size;
}

JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target,
                       const Rates& rates) {
  const int64_t layers = spec.model.num_layers;
  if (layers <= kFewLayers + 1) return size_with(spec, layers, target, rates);
  const JobSize few = size_with(spec, kFewLayers, target, rates);
  const JobSize more = size_with(spec, kFewLayers + 1, target, rates);
  const int64_t added = layers - kFewLayers;
  JobSize size;
  for (size_t space = 0; space < size.lower_bound_bytes.size(); ++space) {
    const int64_t bytes = few.lower_bound_bytes[space];
    size.lower_bound_bytes[space] = bytes + added * (more.lower_bound_bytes[space] - bytes);
  }
  size.step_seconds =
      few.step_seconds + static_cast<double>(added) * (more.step_seconds - few.step_seconds);
  return size;
}

}  // namespace snug::plan
