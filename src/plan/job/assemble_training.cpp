#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "formats/recipe/recipe.h"
#include "passes/gradient/recompute.h"
#include "plan/choice/choose_recompute.h"
#include "plan/choice/choose_streaming.h"
#include "plan/job/assembly.h"
#include "plan/job/offloaded.h"
#include "plan/job/training_programs.h"
#include "plan/spec/generation_spec.h"
#include "plan/spec/model_notices.h"
#include "plan/spec/rollout_spec.h"
#include "plan/spec/unused_keys.h"
#include "plan/time/calibration_file.h"
#include "plan/time/clock.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

formats::OffloadOptimizer offload_optimizer_of(const passes::StreamOptions& options) {
  using formats::OffloadOptimizer;
  if (!options.optimizer) return OffloadOptimizer::none;
  return options.update_on_host ? OffloadOptimizer::host : OffloadOptimizer::stream;
}

std::string type_name(program::DType compute) {
  using formats::ComputeDtype;
  const auto word = [](ComputeDtype type) { return std::string(base::word_of(type)); };
  if (compute == program::DType::f32) return word(ComputeDtype::fp32);
  return word(compute == program::DType::f16 ? ComputeDtype::fp16 : ComputeDtype::bf16);
}

// The name of the format in which the base model's linears are stored.
std::string base_name(const TrainingSpec& spec) {
  if (!spec.quantization) return type_name(spec.compute);
  return spec.quantization->nested ? "nf4-dq" : "nf4";
}

std::vector<PlanDocument::LayerModes> runs_of_layers(const TrainingSpec& spec) {
  std::vector<PlanDocument::LayerModes> runs;
  for (int32_t layer = 0; layer < spec.model.num_layers; ++layer) {
    const std::string mode(base::word_of(spec.recompute.of_layer(layer)));
    if (runs.empty() || runs.back().mode != mode) runs.push_back({mode, 0});
    ++runs.back().layers;
  }
  return runs;
}

std::optional<RankFigures> rank_figures(const TrainingInputs& inputs, const TrainingSpec& spec,
                                        const Job& job) {
  const passes::ShardingOptions& grid = spec.ranks;
  if (grid.ranks() == 1) return std::nullopt;
  RankFigures figures{.strategy = std::string(base::word_of(inputs.recipe.strategy)),
                      .ranks = grid.ranks(),
                      .node_ranks = std::min(grid.node_ranks, grid.ranks()),
                      .shards = grid.shards,
                      .replicas = grid.replicas,
                      .collectives = {}};
  for (const StepProgram& step : step_programs(job, spec.accumulation))
    for (const program::Operation& operation : step.program->operations) {
      if (program::traits_of(operation).category != program::Category::collective) continue;
      RankFigures::Collectives& of_kind =
          figures.collectives[std::string(name_of(operation.kind()))];
      const double sent = program::cost({*step.program, operation}, {}).bytes;
      of_kind.count += step.runs;
      of_kind.sent_bytes += step.runs * std::llround(sent);
    }
  return figures;
}

// The document except for the memory outside the arenas. If the recipe gives `host_memory`, that is
// the host's capacity.
PlanDocument document_of(const TrainingInputs& inputs, const TrainingSpec& spec, const Job& job) {
  PlanDocument document = describe(job, inputs.target);
  if (inputs.recipe.host_memory > 0) document.host.capacity_bytes = inputs.recipe.host_memory;
  document.model = inputs.recipe.model;
  document.method = base::word_of(spec.method);
  if (spec.objective.kind != methods::ObjectiveKind::next_token)
    document.objective = base::word_of(spec.objective.kind);
  document.base = base_name(spec);
  document.experts_in_4_bits = spec.quantization && !spec.quantization->experts.empty();
  document.compute_dtype = type_name(spec.compute);
  document.recompute = base::word_of(inputs.recipe.recompute);
  if (inputs.recipe.recompute == formats::Recompute::automatic)
    document.recompute_layers = runs_of_layers(spec);
  document.activation_offloading = spec.activation_offloading;
  document.offload_params = has_weights_on_host(job);
  // Tensors below the threshold stay on the device, whatever the recipe says.
  passes::StreamOptions streaming = spec.streaming;
  streaming.optimizer = has_optimizer_on_host(job);
  document.offload_optimizer = base::word_of(offload_optimizer_of(streaming));
  document.offload_window_bytes = spec.streaming.window_bytes;
  document.rows = spec.rows;
  document.row_tokens = spec.row_tokens.sum();
  document.encoder_row_tokens = spec.row_tokens.sum() - spec.row_tokens.decoder();
  document.row_documents = spec.row_segments;
  document.has_data = inputs.data.has_value();
  if (spec.model.rope.scaling == models::RopeScaling::longrope)
    document.rotary_factors =
        spec.model.rope.uses_long_factors(spec.sequence_tokens().decoder()) ? "long" : "short";
  document.tokens_per_step = spec.micro_tokens() * spec.accumulation * spec.ranks.ranks();
  document.outside_basis = Basis::unknown;
  document.threads = base::thread_count(inputs.recipe.threads);
  document.ranks = rank_figures(inputs, spec, job);
  return document;
}

// The bytes of host memory left for the arenas, measured for this job. Other jobs of the same
// recipe differ from it only in their arenas.
int64_t host_budget(const TrainingInputs& inputs, Job job, const MeasureProcess& measure) {
  if (!host_limit(inputs.recipe, inputs.target)) return std::numeric_limits<int64_t>::max();
  lay_out(job, inputs.target);
  PlanDocument document = describe(job, inputs.target);
  if (measure) set_outside(document, measure(job).outside_bytes);
  return budget_of(inputs.recipe, document, inputs.target).host_bytes;
}

bool has_checkpoints(const TrainingSpec& spec) {
  for (int32_t layer = 0; layer < spec.model.num_layers; ++layer)
    if (passes::keeps_checkpoints(spec.recompute.of_layer(layer))) return true;
  return false;
}

// Where no limit is set for a CPU's memory, choices leave 1 / kLeftOfTheMachine of the free memory
// unused, since other programs may take some during the run.
constexpr int64_t kLeftOfTheMachine = 16;

// The largest device arena that a choice may lead to; the same for all ranks.
int64_t room_on_device(const TrainingInputs& inputs) {
  const int64_t capacity =
      inputs.least_capacity_bytes.value_or(inputs.target.capacity_bytes(program::Space::device));
  const bool is_shared = inputs.target.host_reaches_device() && inputs.recipe.device_memory == 0;
  return is_shared ? capacity - capacity / kLeftOfTheMachine : capacity;
}

// Makes the choices that the recipe leaves open: where weights are updated, how much device memory
// is for copies, what layers recompute, and whether their checkpoints are moved to the host.
class OpenChoices {
 public:
  OpenChoices(const TrainingInputs& inputs, const ChoiceInputs& by, const TrainingSpec& spec)
      : inputs_(inputs),
        by_(by),
        spec_(spec),
        streaming_(streaming_choice(inputs.recipe, spec, inputs.target)) {
    streaming_.device_bytes = by.device_bytes;
    streaming_.host_budget = by.host_budget;
  }

  RecomputeChoice best() const {
    if (inputs_.recipe.recompute != formats::Recompute::automatic)
      return planned_choice(streamed(spec_), {0, {}, by_.target, by_.rates, by_.expected});
    std::vector<TrainingSpec> forms{with_mode(formats::Recompute::layer)};
    const bool is_open =
        !inputs_.target.host_reaches_device() && !inputs_.recipe.is_given("activation_offloading");
    if (is_open) {
      forms.push_back(forms.front());
      forms.back().activation_offloading = true;
    }
    RecomputeChoice best =
        streaming_.is_open() ? best_next_to_copies(forms) : choose_recompute(forms, by_);
    if (is_open && !has_checkpoints(best.spec)) best.spec.activation_offloading = false;
    return best;
  }

 private:
  TrainingSpec with_mode(formats::Recompute mode) const {
    TrainingSpec spec = spec_;
    spec.recompute = mode;
    return spec;
  }

  TrainingSpec streamed(TrainingSpec spec) const {
    if (streaming_.is_open())
      spec.streaming = choose_streaming(spec, streaming_, inputs_.target, by_.rates, by_.expected);
    return spec;
  }

  // Compares, and returns the fastest of: each form with a streaming window chosen for it; the best
  // mixture of modes that fits together with the window of the best form; and uniform modes that
  // keep more, with windows of their own.
  RecomputeChoice best_next_to_copies(const std::vector<TrainingSpec>& forms) const {
    std::optional<RecomputeChoice> best;
    const auto take_if_better = [&](RecomputeChoice other) {
      if (!best || is_better(other, *best)) best = std::move(other);
    };
    for (const TrainingSpec& form : forms) take_if_better(planned_choice(streamed(form), by_));
    const TrainingSpec with_copies = best->spec;
    RecomputeChoice mixture = choose_recompute({&with_copies, 1}, by_);
    const int64_t nothing_again_bytes = mixture.nothing_again_bytes;
    take_if_better(std::move(mixture));
    for (const auto mode : {formats::Recompute::none, formats::Recompute::keep_all})
      take_if_better(planned_choice(streamed(with_mode(mode)), by_));
    best->nothing_again_bytes = nothing_again_bytes;
    return std::move(*best);
  }

  const TrainingInputs& inputs_;
  const ChoiceInputs& by_;
  const TrainingSpec& spec_;
  StreamingChoice streaming_;
};

// Weights that lie in parts are gathered once for a generation, unless there is no room for them.
RecomputeChoice best_choice(const TrainingInputs& inputs, const ChoiceInputs& by,
                            const TrainingSpec& spec) {
  RecomputeChoice once = OpenChoices(inputs, by, spec).best();
  const bool has_room = once.fits && (by.device_bytes == 0 || once.device_bytes <= by.device_bytes);
  if (has_room || !spec.gathers_once()) return once;
  TrainingSpec within = spec;
  within.rollouts->gathers_once = false;
  RecomputeChoice other = OpenChoices(inputs, by, within).best();
  return other.device_bytes < once.device_bytes ? other : once;
}

RecomputeChoice as_chosen(const TrainingSpec& spec, const Chosen& chosen, const ChoiceInputs& by) {
  RecomputeChoice choice = planned_choice(with_chosen(spec, chosen), by);
  choice.nothing_again_bytes = chosen.nothing_again_bytes;
  return choice;
}

}  // namespace

PlannedTraining assemble_training(const TrainingInputs& inputs, const MeasureProcess& measure) {
  TrainingSpec spec =
      training_spec(inputs.recipe, inputs.model.config, inputs.target, inputs.documents());
  spec.verify = inputs.verify;
  Rates rates = rates_for(inputs.recipe, inputs.target);
  // Documents that are prompts say nothing of the lengths of answers.
  const program::ExpectedBounds expected = inputs.data && !spec.rollouts
                                               ? inputs.data->expected
                                               : program::full_rows(spec.sequence_tokens());
  std::optional<int64_t> host_bytes;
  const HostBudget budget = [&](const Job& job) {
    if (!host_bytes) host_bytes = host_budget(inputs, job, measure);
    return *host_bytes;
  };
  const ChoiceInputs by{room_on_device(inputs), budget, inputs.target, rates, expected};
  RecomputeChoice chosen =
      inputs.chosen ? as_chosen(spec, *inputs.chosen, by) : best_choice(inputs, by, spec);
  spec = std::move(chosen.spec);
  Job job = std::move(chosen.job);
  lay_out(job, inputs.target);  // a job that does not fit may not have a layout yet
  PlanDocument document = document_of(inputs, spec, job);
  document.recompute_nothing_bytes = chosen.nothing_again_bytes;
  const Estimate step = step_estimate(job, spec.accumulation, rates, expected);
  document.step_seconds = step.seconds;
  document.step_basis = rates.basis();
  document.step_other_algorithm_seconds = step.other_algorithm_seconds;
  document.step_unsampled_seconds = step.unsampled_seconds;
  for (const auto& [channel, seconds] : busy_seconds(job, spec.accumulation, rates, expected))
    document.busy_seconds.emplace(name_of(channel), seconds);
  document.load_seconds = load_seconds(job, rates);
  document.load_basis = load_basis(job, rates);
  const PassInputs passes{
      job,
      spec,
      rates,
      expected,
      inputs.data ? std::optional(inputs.data->rows) : std::nullopt,
      {asked_records(inputs.recipe, inputs.documents()), inputs.recipe.max_new_tokens}};
  document.reference = reference_pass(passes);
  if (inputs.recipe.evaluates()) document.evaluation = evaluation_pass(passes);
  document.rollouts = rollout_figures(passes);
  if (document.rollouts) document.step_seconds = document.rollouts->step_seconds();
  document.save_seconds = save_seconds(job, rates, inputs.recipe.save_only_model);
  document.save_basis = rates.storage_basis();
  ProcessBytes process;
  if (measure) {
    process = measure(job);
    if (spec.rollouts)
      process.outside_bytes +=
          spec.rollouts->host_bytes() + evaluation_host_bytes(*spec.rollouts, inputs.documents());
    set_outside(document, process.outside_bytes);
    if (inputs.data) {
      document.reading_bytes = inputs.data->reading_bytes;
      document.held_bytes = process.resident_peak_bytes;
    }
  }
  return {{std::move(job), std::move(document), process},
          inputs,
          std::move(spec),
          std::move(rates),
          expected};
}

const JobDocuments& TrainingInputs::documents() const {
  static const JobDocuments none;
  return data ? data->documents : none;
}

std::vector<TimedOperations> PlannedTraining::times() const {
  return step_times(job, spec.accumulation, rates, expected);
}

Chosen PlannedTraining::chosen() const { return chosen_of(spec, document.recompute_nothing_bytes); }

std::vector<std::string> PlannedTraining::notices() const {
  std::vector<std::string> notices = keys_that_move_nothing(inputs.recipe, job);
  for (std::string& notice : model_notices(inputs.recipe, inputs.model.config))
    notices.push_back(std::move(notice));
  for (std::string& notice : unread_sampling_keys(inputs.recipe))
    notices.push_back(std::move(notice));
  if (auto notice = packing_notice(inputs.recipe)) notices.push_back(std::move(*notice));
  return notices;
}

Verdict PlannedTraining::verdict() const {
  return judge_fit(inputs.recipe, inputs.model, document, inputs.target, inputs.documents());
}

}  // namespace snug::plan
