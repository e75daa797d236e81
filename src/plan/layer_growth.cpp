#include "plan/layer_growth.h"

#include "base/error.h"
#include "plan/clock.h"

namespace snug::plan {
namespace {

// The first layer needs no gradient of its input and the last ends in the head: two layers have
// neither of a layer in the middle, which the third adds.
constexpr int64_t kFewLayers = 3;

using Spaces = std::array<passes::SpaceLayout, program::kSpaceCount>;

struct Sample {
  Spaces spaces;
  double step_seconds = 0;
};

Sample sample_of(const Job& job, const TrainingSpec& spec, const Rates& rates) {
  return {job.layout.spaces,
          step_seconds(job, spec.accumulation, rates, program::full_rows(spec.row_tokens))};
}

Sample sample_with(const TrainingSpec& spec, int64_t layers, const program::Target& target,
                   const Rates& rates) {
  TrainingSpec changed = spec;
  changed.model.num_layers = layers;
  return sample_of(plan_training(changed, target), changed, rates);
}

JobSize size_of(const Sample& sample) {
  JobSize size;
  for (size_t space = 0; space < size.lower_bound_bytes.size(); ++space)
    size.lower_bound_bytes[space] = sample.spaces[space].lower_bound_bytes();
  size.step_seconds = sample.step_seconds;
  return size;
}

// `few` with so many layers more as `more` has one.
passes::SpaceLayout grown(const passes::SpaceLayout& few, const passes::SpaceLayout& more,
                          int64_t layers) {
  const auto follow = [&](int64_t from, int64_t to) { return from + layers * (to - from); };
  passes::SpaceLayout result;
  result.run_bytes = follow(few.run_bytes, more.run_bytes);
  result.step_bytes = follow(few.step_bytes, more.step_bytes);
  SNUG_CHECK_EQ(few.live_bytes.size(), more.live_bytes.size());
  for (size_t i = 0; i < few.live_bytes.size(); ++i)
    result.live_bytes.push_back(follow(few.live_bytes[i], more.live_bytes[i]));
  return result;
}

}  // namespace

JobSize size_of(const Job& job, const TrainingSpec& spec, const Rates& rates) {
  return size_of(sample_of(job, spec, rates));
}

JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target,
                       const Rates& rates) {
  const int64_t layers = spec.model.num_layers;
  // Where some weights are frozen, no layer need be like another; room for copies is used up after
  // some layers.
  if (layers <= kFewLayers + 1 || !spec.frozen.empty() || spec.streaming.window_bytes > 0)
    return size_of(sample_with(spec, layers, target, rates));
  const Sample few = sample_with(spec, kFewLayers, target, rates);
  const Sample more = sample_with(spec, kFewLayers + 1, target, rates);
  const int64_t added = layers - kFewLayers;
  Sample whole;
  for (size_t space = 0; space < whole.spaces.size(); ++space)
    whole.spaces[space] = grown(few.spaces[space], more.spaces[space], added);
  whole.step_seconds =
      few.step_seconds + static_cast<double>(added) * (more.step_seconds - few.step_seconds);
  return size_of(whole);
}

}  // namespace snug::plan
