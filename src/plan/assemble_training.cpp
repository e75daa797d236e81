#include <algorithm>
#include <cmath>
#include <utility>

#include "base/threads.h"
#include "plan/assembly.h"
#include "plan/calibration_file.h"
#include "plan/choose_streaming.h"
#include "plan/clock.h"

namespace snug::plan {
namespace {

formats::Method method_of(const TrainingSpec& spec) {
  using formats::Method;
  if (spec.method == MethodKind::full) return Method::full;
  return spec.quantization ? Method::qlora : Method::lora;
}

formats::OffloadOptimizer offload_optimizer_of(const passes::StreamOptions& options) {
  using formats::OffloadOptimizer;
  if (!options.optimizer) return OffloadOptimizer::none;
  return options.update_on_host ? OffloadOptimizer::host : OffloadOptimizer::stream;
}

std::string type_name(program::DType compute) {
  using formats::ComputeDtype;
  return std::string(
      base::word_of(compute == program::DType::f32 ? ComputeDtype::fp32 : ComputeDtype::bf16));
}

// How the base model's linears are stored.
std::string base_name(const TrainingSpec& spec) {
  if (!spec.quantization) return type_name(spec.compute);
  return spec.quantization->nested ? "nf4-dq" : "nf4";
}

using program::Role;

// Whether a tensor with one of these roles lies in the host's memory between runs.
bool lies_on_host(const Job& job, std::initializer_list<Role> roles) {
  for (const program::Program& program : job.programs)
    for (const program::Tensor& tensor : program.tensors)
      if (tensor.space == program::Space::pinned_host &&
          tensor.lifetime != program::Lifetime::program &&
          std::ranges::find(roles, tensor.role) != roles.end())
        return true;
  return false;
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
      if (!program::traits_of(operation).is_collective) continue;
      RankFigures::Collectives& of_kind =
          figures.collectives[std::string(name_of(operation.kind()))];
      const double sent = program::cost({*step.program, operation}, {}).bytes;
      of_kind.count += step.runs;
      of_kind.sent_bytes += step.runs * std::llround(sent);
    }
  return figures;
}

// All but what lies outside the arenas. `host_memory` of the recipe is the capacity of the host
// where it is given.
PlanDocument document_of(const TrainingInputs& inputs, const TrainingSpec& spec, const Job& job) {
  PlanDocument document = describe(job, inputs.target);
  if (inputs.recipe.host_memory > 0) document.host.capacity_bytes = inputs.recipe.host_memory;
  document.model = inputs.recipe.model;
  document.method = base::word_of(method_of(spec));
  document.base = base_name(spec);
  document.compute_dtype = type_name(spec.compute);
  document.recompute = base::word_of(spec.recompute);
  document.activation_offloading = spec.activation_offloading;
  document.offload_params = lies_on_host(job, {Role::weight, Role::quant_state, Role::adapter});
  // Smaller tensors than the threshold stay on the device, whatever the recipe says.
  passes::StreamOptions streaming = spec.streaming;
  streaming.optimizer = lies_on_host(job, {Role::master, Role::moment, Role::gradient});
  document.offload_optimizer = base::word_of(offload_optimizer_of(streaming));
  document.offload_window_bytes = spec.streaming.window_bytes;
  document.rows = spec.rows;
  document.row_tokens = spec.row_tokens;
  document.row_documents = spec.row_segments;
  document.has_data = inputs.data.has_value();
  if (spec.model.rope.scaling == models::RopeScaling::longrope)
    document.rotary_factors =
        spec.model.rope.uses_long_factors(spec.sequence_tokens()) ? "long" : "short";
  document.tokens_per_step = spec.rows * spec.row_tokens * spec.accumulation * spec.ranks.ranks();
  document.outside_basis = Basis::unknown;
  document.threads = base::thread_count(inputs.recipe.threads);
  document.ranks = rank_figures(inputs, spec, job);
  return document;
}

}  // namespace

PlannedTraining assemble_training(const TrainingInputs& inputs, const MeasureProcess& measure) {
  TrainingSpec spec = training_spec(inputs.recipe, inputs.model.config, inputs.target,
                                    inputs.data ? inputs.data->shape : RowShape{});
  spec.verify = inputs.verify;
  Rates rates = rates_for(inputs.recipe, inputs.target);
  const program::ExpectedBounds expected =
      inputs.data ? inputs.data->expected : program::full_rows(spec.row_tokens);
  if (const StreamingChoice choice = streaming_choice(inputs.recipe, spec, inputs.target);
      choice.is_open())
    spec.streaming = choose_streaming(spec, choice, inputs.target, rates, expected);
  Job job = plan_training(spec, inputs.target);
  PlanDocument document = document_of(inputs, spec, job);
  document.step_seconds = step_seconds(job, spec.accumulation, rates, expected);
  document.step_basis = rates.basis();
  for (const auto& [channel, seconds] : busy_seconds(job, spec.accumulation, rates, expected))
    document.busy_seconds.emplace(name_of(channel), seconds);
  document.load_seconds = load_seconds(job, rates);
  document.load_basis = load_basis(job, rates);
  ProcessBytes process;
  if (measure) {
    process = measure(job);
    set_outside(document, process.outside_bytes);
    if (inputs.data)
      document.reading_bytes = std::max(inputs.data->reading_bytes, process.resident_peak_bytes);
  }
  return {{std::move(job), std::move(document), process},
          inputs,
          std::move(spec),
          std::move(rates),
          expected};
}

std::vector<TimedOperations> PlannedTraining::times() const {
  return step_times(job, spec.accumulation, rates, expected);
}

Verdict PlannedTraining::verdict() const {
  return judge_fit(inputs.recipe, inputs.model, document, inputs.target,
                   inputs.data ? inputs.data->shape : RowShape{});
}

}  // namespace snug::plan
