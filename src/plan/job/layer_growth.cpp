#include "plan/job/layer_growth.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/error.h"
#include "formats/adapter/module_pattern.h"
#include "plan/job/training_programs.h"
#include "plan/time/clock.h"

namespace snug::plan {
namespace {

// The first layer differs from the others (it needs no gradient of its input, unless the embedding
// trains), and the last one is followed by the head. A job of two layers has no layer between
// these; the third one adds it.
constexpr int64_t kFewLayers = 3;

using Spaces = std::array<passes::SpaceLayout, program::kSpaceCount>;

struct Sample {
  Spaces spaces;
  std::vector<program::Stage> stages;  // of each program
  std::vector<bool> is_micro;          // of each program
  std::vector<ProgramTime> programs;
  double step_seconds = 0;
};

bool is_micro(const program::Program& program) {
  using program::ProgramName;
  return std::ranges::any_of(
      std::array{ProgramName::micro_first, ProgramName::micro_next, ProgramName::micro_last},
      [&](ProgramName name) { return program.name == name_of(name); });
}

Sample sample_of(const Job& job, const TrainingSpec& spec, const Rates& rates,
                 const program::ExpectedBounds& expected) {
  Sample sample;
  sample.spaces = job.layout.spaces;
  sample.stages = job.layout.stages;
  for (const program::Program& program : job.programs) sample.is_micro.push_back(is_micro(program));
  sample.programs = program_times(job, spec.accumulation, rates, expected);
  const std::vector<StepProgram> steps = step_programs(job, spec.accumulation);
  for (size_t i = 0; i < steps.size(); ++i)
    sample.step_seconds += static_cast<double>(steps[i].runs) * sample.programs[i].seconds;
  return sample;
}

struct Sampling {
  const program::Target& target;
  const Rates& rates;
  const program::ExpectedBounds& expected;
};

Sample sample_of(const TrainingSpec& spec, const Sampling& by) {
  return sample_of(training_programs(spec, by.target), spec, by.rates, by.expected);
}

Sample sample_with(const TrainingSpec& spec, int64_t layers, const Sampling& by) {
  TrainingSpec changed = spec;
  changed.model = models::with_layers(spec.model, layers);
  return sample_of(changed, by);
}

JobSize size_of(const Sample& sample) {
  JobSize size;
  for (size_t space = 0; space < size.lower_bound_bytes.size(); ++space) {
    const passes::SpaceLayout& layout = sample.spaces[space];
    size.lower_bound_bytes[space] = layout.lower_bound_bytes();
    const int64_t step_bytes = layout.of(program::Stage::training).step_bytes;
    size.lasting_bytes[space] = layout.run_bytes + step_bytes;
    for (size_t i = 0; i < layout.live_bytes.size(); ++i) {
      int64_t& most = (sample.is_micro[i] ? size.micro_bytes : size.other_bytes)[space];
      const int64_t own_step_bytes = layout.of(sample.stages[i]).step_bytes;
      most = std::max(most, own_step_bytes - step_bytes + layout.live_bytes[i]);
    }
  }
  size.programs = sample.programs;
  size.step_seconds = sample.step_seconds;
  return size;
}

// Whether adapters may apply to some layers only: because of an expression, names with a layer's
// number, a list of layers, or the method.
bool names_layers(const TrainingSpec& spec) {
  if (!spec.is_adapted()) return false;
  if (methods::method_of(spec.method).extend != nullptr) return true;
  const auto names_layer = [](const std::string& target) {
    return formats::is_module_pattern(target) ||
           std::ranges::any_of(target, [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  const auto is_of_layers = [&](const methods::LoraPattern& pattern) {
    return names_layer(pattern.written);
  };
  const methods::LoraOptions& lora = spec.lora;
  return !lora.layers.empty() || std::ranges::any_of(lora.target_modules, names_layer) ||
         std::ranges::any_of(lora.target_parameters, names_layer) ||
         std::ranges::any_of(lora.modules_to_save, names_layer) ||
         std::ranges::any_of(lora.ranks, is_of_layers) ||
         std::ranges::any_of(lora.alphas, is_of_layers);
}

// Whether experts are in some layers only, and not in all from one of the first on.
bool alternates(const models::ModelConfig& model) {
  const std::vector<int64_t>& dense = model.dense_layers;
  return !dense.empty() && (std::ssize(dense) > kFewLayers || dense.back() >= kFewLayers);
}

// Extrapolates `few` by this number of layers; `more` has one layer more than `few`. `stages`: of
// each program.
passes::SpaceLayout grown(const passes::SpaceLayout& few, const passes::SpaceLayout& more,
                          const std::vector<program::Stage>& stages, int64_t layers) {
  const auto follow = [&](int64_t from, int64_t to) { return from + layers * (to - from); };
  passes::SpaceLayout result;
  result.run_bytes = follow(few.run_bytes, more.run_bytes);
  for (size_t i = 0; i < result.stages.size(); ++i)
    result.stages[i].step_bytes = follow(few.stages[i].step_bytes, more.stages[i].step_bytes);
  SNUG_CHECK_EQ(few.live_bytes.size(), more.live_bytes.size());
  for (size_t i = 0; i < few.live_bytes.size(); ++i) {
    result.live_bytes.push_back(follow(few.live_bytes[i], more.live_bytes[i]));
    int64_t& most = result.of(stages[i]).live_bytes;
    most = std::max(most, result.live_bytes.back());
  }
  return result;
}

std::vector<ProgramTime> grown(const std::vector<ProgramTime>& few,
                               const std::vector<ProgramTime>& more, int64_t layers) {
  const auto follow = [&](double from, double to) {
    return from + static_cast<double>(layers) * (to - from);
  };
  SNUG_CHECK_EQ(few.size(), more.size());
  std::vector<ProgramTime> result;
  for (size_t i = 0; i < few.size(); ++i) {
    ProgramTime time{few[i].name, follow(few[i].seconds, more[i].seconds), few[i].busy};
    for (const auto& [channel, seconds] : more[i].busy)
      time.busy[channel] = follow(time.busy[channel], seconds);
    result.push_back(std::move(time));
  }
  return result;
}

}  // namespace

JobSize size_of(const Job& job, const TrainingSpec& spec, const Rates& rates) {
  return size_of(sample_of(job, spec, rates, program::full_rows(spec.row_tokens)));
}

JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target, const Rates& rates,
                       bool window_is_small) {
  return size_by_layers(spec, target, rates, program::full_rows(spec.row_tokens), window_is_small);
}

JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target, const Rates& rates,
                       const program::ExpectedBounds& expected, bool window_is_small) {
  const Sampling by{target, rates, expected};
  // The layers of the encoder and of the decoder, which can be extrapolated together if both have
  // the same number.
  const int64_t layers = spec.model.num_layers - spec.model.encoder_layers;
  const bool grows_alike = !spec.model.has_encoder() || spec.model.encoder_layers == layers;
  // Not extrapolated: where some weights are frozen, only some layers have adapters, or layers are
  // unlike each other; and memory for copies stops growing after some layers.
  if (layers <= kFewLayers + 1 || !grows_alike || !spec.frozen.empty() || names_layers(spec) ||
      spec.model.has_unlike_layers() || alternates(spec.model) ||
      (spec.streaming.window_bytes > 0 && !window_is_small))
    return size_of(sample_of(spec, by));
  const Sample few = sample_with(spec, kFewLayers, by);
  const Sample more = sample_with(spec, kFewLayers + 1, by);
  const int64_t added = layers - kFewLayers;
  Sample whole;
  for (size_t space = 0; space < whole.spaces.size(); ++space)
    whole.spaces[space] = grown(few.spaces[space], more.spaces[space], few.stages, added);
  whole.stages = few.stages;
  whole.is_micro = few.is_micro;
  whole.programs = grown(few.programs, more.programs, added);
  whole.step_seconds =
      few.step_seconds + static_cast<double>(added) * (more.step_seconds - few.step_seconds);
  return size_of(whole);
}

}  // namespace snug::plan
