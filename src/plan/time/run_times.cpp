#include "plan/time/run_times.h"

#include <algorithm>

#include "plan/job/memory.h"
#include "plan/time/clock.h"

namespace snug::plan {
namespace {

using program::ProgramName;

// The seconds of a program that the job has.
double seconds_of(const Job& job, ProgramName name, const Rates& rates,
                  const program::BatchBounds& bounds) {
  const program::Program* program = job.find(name);
  return program == nullptr ? 0 : simulate(*program, rates, bounds).seconds;
}

// The host reads the result of each run before it begins the next.
PassFigures pass_of(const PassInputs& inputs, ProgramName name) {
  const double seconds = seconds_of(inputs.job, name, inputs.rates, inputs.expected);
  return {.run_seconds = seconds + inputs.rates.join().seconds};
}

int64_t runs_of(int64_t rows, int64_t rows_per_run) {
  return (rows + rows_per_run - 1) / rows_per_run;
}

int64_t evaluation_runs(const EpochRows& rows, int64_t rows_per_run) {
  int64_t runs = 0;
  for (const int64_t of_set : rows.evaluation) runs += runs_of(of_set, rows_per_run);
  return runs;
}

// How long the answers of all sets take: groups of as many as run side by side, whose prompts are
// read and which are then decoded together, with half of their tokens on average in the cache.
double generation_seconds(const PassInputs& inputs, const InferenceShape& shape) {
  const int64_t groups = runs_of(inputs.answers.count, shape.sequences);
  const int64_t prompt_tokens =
      shape.encoder_tokens > 0
          ? shape.encoder_tokens
          : std::max<int64_t>(1, shape.capacity.decoder() + 1 - inputs.answers.new_tokens);
  const int64_t prompts = runs_of(shape.sequences, inputs.answers.of_a_prompt);
  const int64_t prefills = shape.encoder_tokens > 0
                               ? shape.sequences
                               : runs_of(prompts * prompt_tokens, shape.prefill_tokens);
  const program::ExpectedBounds of_prompt{.mean_segment_tokens =
                                              static_cast<double>(prompt_tokens)};
  const program::ExpectedBounds of_answer{.mean_segment_tokens =
                                              static_cast<double>(prompt_tokens) +
                                              static_cast<double>(inputs.answers.new_tokens) / 2};
  const double join = inputs.rates.join().seconds;
  const double prefill =
      seconds_of(inputs.job, ProgramName::prefill, inputs.rates, of_prompt) + join;
  const double decode = seconds_of(inputs.job, ProgramName::decode, inputs.rates, of_answer) + join;
  return static_cast<double>(groups) *
         (static_cast<double>(prefills) * prefill +
          static_cast<double>(inputs.answers.new_tokens - 1) * decode);
}

// Of a generation whose prompts and answers all have so many tokens.
double rollout_seconds(const PassInputs& inputs, int64_t prompt_tokens, int64_t completion_tokens) {
  const RolloutSizes& sizes = *inputs.spec.rollouts;
  PassInputs asked = inputs;
  asked.answers = {sizes.rank_answers(), completion_tokens, sizes.group};
  InferenceShape shape = *inputs.spec.generation;
  shape.capacity = prompt_tokens + completion_tokens - 1;
  return seconds_of(inputs.job, ProgramName::gather, inputs.rates, {}) +
         generation_seconds(asked, shape);
}

// Of an objective that makes answers: generations of all prompts of each set.
PassFigures answers_pass(const PassInputs& inputs) {
  const RolloutSizes& sizes = *inputs.spec.rollouts;
  const int64_t longest = inputs.spec.generation->capacity.decoder() + 1 - sizes.completion_tokens;
  const double seconds = rollout_seconds(inputs, longest, sizes.completion_tokens);
  if (!inputs.rows) return {.run_seconds = seconds};
  const int64_t generations = evaluation_runs(*inputs.rows, sizes.prompts());
  return {.runs = 0, .first_seconds = static_cast<double>(generations) * seconds};
}

}  // namespace

std::optional<PassFigures> reference_pass(const PassInputs& inputs) {
  if (inputs.spec.objective.reference != methods::ReferenceModel::kept) return std::nullopt;
  PassFigures pass = pass_of(inputs, ProgramName::reference);
  pass.first_seconds = seconds_of(inputs.job, ProgramName::prepare, inputs.rates, inputs.expected);
  if (inputs.rows)
    pass.runs = runs_of(inputs.rows->training, inputs.spec.rows) +
                evaluation_runs(*inputs.rows, inputs.spec.rows);
  return pass;
}

std::optional<PassFigures> evaluation_pass(const PassInputs& inputs) {
  if (inputs.spec.rollouts) return answers_pass(inputs);
  if (inputs.job.find(ProgramName::evaluate) == nullptr) return std::nullopt;
  PassFigures pass = pass_of(inputs, ProgramName::evaluate);
  if (inputs.rows)
    pass.runs = evaluation_runs(*inputs.rows, inputs.spec.rows * inputs.spec.ranks.ranks());
  if (inputs.spec.generation)
    pass.first_seconds = generation_seconds(inputs, *inputs.spec.generation);
  return pass;
}

std::optional<RolloutFigures> rollout_figures(const PassInputs& inputs) {
  if (!inputs.spec.rollouts) return std::nullopt;
  const RolloutSizes& sizes = *inputs.spec.rollouts;
  RolloutFigures figures{.sizes = sizes, .side_by_side = inputs.spec.generation->sequences};
  figures.seconds = rollout_seconds(inputs, sizes.prompt_tokens, sizes.completion_tokens);
  if (inputs.spec.gathers_once())
    figures.gather_seconds = seconds_of(inputs.job, ProgramName::gather, inputs.rates, {});
  figures.gathers_within = inputs.spec.ranks.shards_weights() && !sizes.gathers_once;
  const int64_t half = (sizes.completion_tokens + 1) / 2;
  figures.half_seconds = rollout_seconds(inputs, sizes.prompt_tokens, half);
  figures.update_seconds =
      step_seconds(inputs.job, inputs.spec.accumulation, inputs.rates, inputs.expected);
  const int64_t half_tokens = sizes.rank_update_answers() * (sizes.prompt_tokens + half);
  figures.half_update_seconds =
      step_seconds(inputs.job, runs_of(half_tokens, inputs.spec.row_tokens.decoder()), inputs.rates,
                   inputs.expected);
  for (const ActivityReport& activity : read_memory(inputs.job).activities) {
    const int64_t bytes = activity.bytes[static_cast<size_t>(program::Space::device)];
    if (activity.activity == Activity::training) figures.training_bytes = bytes;
    if (activity.activity == Activity::generating) figures.generating_bytes = bytes;
  }
  return figures;
}

double save_seconds(const Job& job, const Rates& rates, bool only_model) {
  return seconds_of(job, ProgramName::save, rates, {}) +
         (only_model ? 0 : seconds_of(job, ProgramName::save_state, rates, {}));
}

}  // namespace snug::plan
