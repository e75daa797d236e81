#include "plan/job/job.h"

#include <fmt/format.h>

#include <array>
#include <unordered_set>

#include "base/error.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "models/weights.h"
#include "passes/memory/hoist.h"
#include "passes/memory/layout_sizes.h"
#include "plan/job/generating_programs.h"
#include "plan/job/storage_programs.h"
#include "plan/job/training_programs.h"
#include "program/ir/result_names.h"
#include "program/ir/tensor_names.h"
#include "program/verify/verify.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using program::DType;
using program::Program;
using program::ProgramName;
using program::Role;
using program::Tensor;
using program::TensorId;

template <typename Spec>
const methods::Method& method_of(const Spec& spec) {
  return methods::method_of(*std::optional(spec.method));
}

// The network with the parameters that the spec's method adds to it.
template <typename Spec>
models::Stack adapted_stack(const Spec& spec) {
  models::Stack stack = models::stack_of(spec.model);
  if (spec.is_adapted() && method_of(spec).extend != nullptr)
    method_of(spec).extend(stack, spec.method_options());
  return stack;
}

// The forward program with what the spec's method adds to it.
template <typename Spec>
Program adapted(const Program& forward, const Spec& spec, bool is_training) {
  if (!spec.is_adapted() || method_of(spec).rewrite == nullptr) return forward;
  methods::MethodOptions options = spec.method_options();
  options.lora.head = models::stack_of(spec.model).head;
  return method_of(spec).rewrite(forward, options, is_training);
}

const Tensor& tensor_of(const Program& program, std::string_view name) {
  return program.tensor(program.find(name));
}

// Results for the host that add up over a step's micro-batches, and to which every rank contributes
// a share.
std::vector<Tensor> results_of(const Program& forward) {
  std::vector<Tensor> results;
  for (const std::string_view name : program::kResultNames)
    if (const TensorId id = forward.find(name); id != program::kNone)
      results.push_back(forward.tensor(id));
  return results;
}

int64_t elements(const std::vector<Tensor>& tensors) {
  int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.shape.elements();
  return sum;
}

void append(Job& job, std::vector<Program> programs, bool verify) {
  for (Program& program : programs) {
    if (verify)
      for (const std::string& problem : program::verify(program))
        SNUG_CHECK(false, "program {}: {}", program.name, problem);
    job.programs.push_back(std::move(program));
  }
}

class TrainingPlanner {
 public:
  TrainingPlanner(const TrainingSpec& spec, const program::Target& target)
      : spec_(spec),
        stack_(models::stack_of(spec.model)),
        adapted_stack_(adapted_stack(spec)),
        target_(target),
        pipeline_(target, spec.verify, spec.quantization, spec.streaming) {
    pipeline_.show_to(spec.after_pass);
  }

  Job run() {
    job_.method = spec_.method;
    SNUG_CHECK(
        !spec_.update_in_backward || (spec_.accumulation == 1 && spec_.update.max_grad_norm == 0),
        "an update in the backward pass of {} micro-batches, clipped to {}", spec_.accumulation,
        spec_.update.max_grad_norm);
    const Program forward = training_forward(ProgramName::micro_first);
    const std::vector<TensorId> trainable = methods::trainable_tensors(forward, spec_.frozen);
    SNUG_CHECK(!trainable.empty(), "nothing of the model trains");
    for (const TensorId id : trainable) job_.trainables.push_back(forward.tensor(id));
    job_.states = methods::states_of(job_.trainables, spec_.update);
    Program update =
        methods::update(job_.trainables, methods::random_sites(forward, trainable), spec_.update);
    pipeline_.shard_over(
        passes::Sharding(stored(forward), job_.trainables, job_.states, spec_.ranks), spec_.ranks);
    add_micros(forward, trainable, spec_.update_in_backward ? &update : nullptr);
    if (spec_.objective.reference != methods::ReferenceModel::none) add_reference();
    const std::vector<Tensor> sums = results_of(forward);
    std::vector<Tensor> results = sums;
    results.push_back(tensor_of(update, program::kGradientNormName));
    if (spec_.update.loss_scale) {
      results.push_back(methods::loss_scale_tensor());
      results.push_back(methods::loss_scale_counts_tensor());
    }
    add(pipeline_.plain(update, results, sums));
    add_initialise(forward);
    add(pipeline_.plain(methods::prepare(job_.trainables, spec_.update)));
    if (spec_.update.ema_decay > 0)
      add(pipeline_.plain(methods::take_averages(job_.trainables, spec_.update)));
    if (spec_.evaluate) add_evaluate();
    if (spec_.generation) add_generation(*spec_.generation);
    add_storage_programs();
    job_.objective = spec_.objective;
    job_.compute = spec_.compute;
    job_.trainable_parameters = elements(job_.trainables);
    job_.parameters = models::parameter_count(spec_.model) + added_elements();
    job_.passes = pipeline_.records();
    job_.layout = passes::layout_sizes(job_.programs, target_.alignment_bytes());
    return std::move(job_);
  }

 private:
  void add(Program program) { job_.programs.push_back(std::move(program)); }

  // The tokens of a micro-batch, for each stream.
  base::PerStream<int64_t> micro_tokens() const {
    return spec_.row_tokens.map([&](int64_t tokens) { return spec_.rows * tokens; });
  }

  // `is_training`: experts are balanced, and embeddings have noise.
  Program forward_of(const models::Stack& stack, ProgramName name, bool is_training = false) const {
    const models::EmbeddingNoise noise{spec_.neftune_alpha, spec_.update.seed, spec_.rows};
    return models::forward(stack,
                           {.program = name,
                            .own_inputs = false,
                            .compute = spec_.compute,
                            .tokens = micro_tokens(),
                            .segments = spec_.rows * spec_.row_segments,
                            .segment_tokens = spec_.sequence_tokens(),
                            .no_empty_segments = spec_.row_segments == 1,
                            .deterministic = spec_.deterministic,
                            .sequence_tokens = spec_.sequence_tokens().decoder(),
                            .head = models::Head::loss,
                            .router_loss = is_training ? spec_.model.router_loss_factor() : 0,
                            .noise = is_training ? noise : models::EmbeddingNoise{},
                            .outputs = 0,
                            .cache = {}});
  }

  Program adapted_forward(ProgramName name, bool is_training) const {
    return adapted(forward_of(adapted_stack_, name, is_training), spec_, is_training);
  }

  const methods::Objective& objective() const {
    return methods::objective_of(spec_.objective.kind);
  }

  Program training_forward(ProgramName name) const {
    const Program forward = adapted_forward(name, true);
    Program finished = objective().finish(forward, spec_.objective);
    return spec_.update.loss_scale ? methods::scale_losses(finished) : finished;
  }

  // Adds the program for the reference log-probabilities. If they are kept, it computes them before
  // training; otherwise the micro-batch that follows reads them.
  void add_reference() {
    constexpr auto kName = ProgramName::reference;
    if (spec_.objective.reference == methods::ReferenceModel::adapter_off)
      return add(pipeline_.plain(objective().reference(forward_of(stack_, kName), spec_.objective,
                                                       program::kReferenceName)));
    const Program kept = objective().reference(adapted_forward(kName, false), spec_.objective,
                                               program::kKeptReferenceName);
    add(pipeline_.plain(kept, std::array{tensor_of(kept, program::kKeptReferenceName)}));
  }

  Program stored(const Program& forward) const {
    return spec_.quantization ? passes::quantize(forward, *spec_.quantization) : forward;
  }

  // With several ranks, the last micro-batch of a step is a program of its own, after which
  // gradients are summed over all ranks. Operations that move into the backward pass are removed
  // from `update`.
  void add_micros(const Program& forward, const std::vector<TensorId>& trainable, Program* update) {
    const bool has_last = spec_.ranks.ranks() > 1 && spec_.accumulation > 1;
    add_micro(forward, trainable, {.accumulate = false, .is_last = spec_.accumulation == 1},
              update);
    if (spec_.accumulation > (has_last ? 2 : 1))
      add_micro(training_forward(ProgramName::micro_next), trainable,
                {.accumulate = true, .is_last = false}, nullptr);
    if (has_last)
      add_micro(training_forward(ProgramName::micro_last), trainable,
                {.accumulate = true, .is_last = true}, nullptr);
  }

  struct Micro {
    bool accumulate = false;
    bool is_last = false;
  };
  void add_micro(const Program& forward, const std::vector<TensorId>& trainable, const Micro& micro,
                 Program* update) {
    // Gradients of which a rank holds only its part are accumulated by the reduce-scatter, so each
    // micro-batch computes them anew.
    const bool scattered = spec_.ranks.gradients == passes::GradientSharding::scattered;
    const passes::DifferentiateOptions gradients{.gradient = spec_.update.gradient,
                                                 .accumulate = micro.accumulate,
                                                 .begins_anew =
                                                     [&](const Tensor& weight) {
                                                       return scattered && passes::divides_state(
                                                                               weight, spec_.ranks);
                                                     },
                                                 .stochastic = spec_.update.gradient == DType::bf16,
                                                 .seed = spec_.update.seed};
    add(pipeline_.micro(forward, trainable,
                        {.gradients = gradients,
                         .recompute = spec_.recompute,
                         .offload = spec_.activation_offloading,
                         .is_last = micro.is_last},
                        update));
  }

  // The number of trainable elements that do not belong to the model's weights.
  int64_t added_elements() const {
    std::unordered_set<std::string> weights;
    for (models::Weight& weight : models::weights_of(spec_.model))
      weights.insert(std::move(weight.name));
    std::vector<Tensor> added = job_.trainables;
    std::erase_if(added, [&](const Tensor& tensor) { return weights.contains(tensor.name); });
    return elements(added);
  }

  void add_storage_programs() {
    const Origin origin{.model = spec_.model,
                        .init_seed = spec_.init_seed,
                        .adapter_in_files = spec_.adapter_in_files,
                        .adapter_widths = spec_.adapter_widths,
                        .adapter_start = {.seed = spec_.lora.seed, .lora = spec_.lora.init},
                        .loss_scale = spec_.update.loss_scale,
                        .shards = spec_.ranks.shards,
                        .shard_nodes = spec_.ranks.nodes_of(program::RankGroup::shards)};
    append(job_, loading_programs(job_, origin, target_), spec_.verify);
    append(job_, saving_programs(job_, spec_.model, target_), spec_.verify);
  }

  // What of a new adapter follows from the model's weights, and where averages begin.
  void add_initialise(const Program& forward) {
    const bool is_new = spec_.is_adapted() && !spec_.adapter_in_files;
    const auto of_method = is_new ? method_of(spec_).initialise : nullptr;
    program::Builder initialise(ProgramName::initialise);
    if (of_method != nullptr) initialise = program::Builder(of_method(forward));
    methods::begin_averages(job_.trainables, spec_.update, initialise);
    if (!initialise.program().operations.empty()) add(pipeline_.plain(initialise.take()));
  }

  // Of an objective that makes answers: the log-probabilities of the model that made them.
  void add_evaluate() {
    constexpr auto kName = ProgramName::evaluate;
    if (objective().makes_answers) {
      const Program kept = objective().reference(adapted_forward(kName, false), spec_.objective,
                                                 program::kKeptReferenceName);
      return add(pipeline_.plain(kept, std::array{tensor_of(kept, program::kKeptReferenceName)}));
    }
    const Program forward = methods::finish_evaluation(
        objective(), adapted_forward(ProgramName::evaluate, false), spec_.objective);
    const std::vector<Tensor> results = results_of(forward);
    add(pipeline_.plain(forward, results, results));
  }

  // Here nothing is hoisted (passes/memory/hoist.h), since results computed from weights become
  // invalid when the weights train.
  void add_generation(const InferenceShape& shape) {
    const bool once = spec_.gathers_once();
    for (const GeneratingProgram& each :
         generating_programs(adapted_stack_, shape, spec_.compute)) {
      const Program forward = adapted(each.program, spec_, false);
      // Each of them reads all weights.
      if (once && job_.find(ProgramName::gather) == nullptr)
        add(pipeline_.forward(forward, {}, passes::Gathers::alone));
      add(pipeline_.forward(forward, each.results,
                            once ? passes::Gathers::before : passes::Gathers::within));
    }
    job_.key_pools = key_pools(shape, adapted_stack_);
  }

  const TrainingSpec& spec_;
  const models::Stack stack_;
  const models::Stack adapted_stack_;
  const program::Target& target_;
  passes::Pipeline pipeline_;
  Job job_;
};

}  // namespace

base::PerStream<int64_t> TrainingSpec::sequence_tokens() const {
  base::PerStream<int64_t> tokens = row_tokens;
  for (const base::TokenStream stream : row_tokens.streams())
    if (longest_document.decoder() > 0) tokens[stream] = longest_document[stream];
  return tokens;
}

const Program* Job::find(const program::ProgramKey& key) const {
  const int index = index_of(key);
  return index < 0 ? nullptr : &programs[static_cast<size_t>(index)];
}

int Job::index_of(const program::ProgramKey& key) const {
  const std::string name = name_of(key);
  for (size_t i = 0; i < programs.size(); ++i)
    if (programs[i].name == name) return static_cast<int>(i);
  return -1;
}

Job training_programs(const TrainingSpec& spec, const program::Target& target) {
  return TrainingPlanner(spec, target).run();
}

bool is_laid_out(const Job& job) { return job.layout.offsets.size() == job.programs.size(); }

void lay_out(Job& job, const program::Target& target) {
  if (!is_laid_out(job)) job.layout = passes::layout(job.programs, target.alignment_bytes());
}

Job plan_training(const TrainingSpec& spec, const program::Target& target) {
  Job job = training_programs(spec, target);
  lay_out(job, target);
  return job;
}

Job plan_inference(const InferenceSpec& spec, const program::Target& target) {
  passes::Pipeline pipeline(target, spec.verify, spec.quantization);
  pipeline.show_to(spec.after_pass);
  Job job;
  if (spec.method) job.method = *spec.method;
  const models::Stack stack = adapted_stack(spec);
  Program once;
  for (const GeneratingProgram& each : generating_programs(stack, spec.shape, spec.compute)) {
    const Program forward = adapted(each.program, spec, false);
    passes::Hoisted hoisted = passes::hoist(methods::with_lora_slots(forward, spec.slots));
    // All programs hoist the same tensors, except that only the first has the encoder's.
    if (once.operations.empty()) once = std::move(hoisted.once);
    job.programs.push_back(pipeline.plain(hoisted.program, each.results));
  }
  if (!once.operations.empty()) job.programs.push_back(pipeline.plain(once));
  const Origin origin{.model = spec.model,
                      .init_seed = spec.init_seed,
                      .adapter_in_files = true,
                      .adapter_widths = spec.adapter_widths,
                      .adapter_rows = spec.lora.token_rows,
                      .has_slots = !spec.slots.empty()};
  append(job, loading_programs(job, origin, target), spec.verify);
  job.layout = passes::layout(job.programs, target.alignment_bytes());
  job.key_pools = key_pools(spec.shape, stack);
  job.passes = pipeline.records();
  job.compute = spec.compute;
  job.parameters = models::parameter_count(spec.model);
  return job;
}

Job make_job(std::vector<Program> programs, const program::Target& target) {
  Job job;
  job.programs = std::move(programs);
  job.layout = passes::layout(job.programs, target.alignment_bytes());
  return job;
}

std::vector<Tensor> adapter_tensors(const Job& job) {
  std::vector<Tensor> tensors;
  std::unordered_set<std::string_view> known;
  for (const Program& program : job.programs)
    for (const Tensor& tensor : program.tensors)
      if (tensor.role == Role::adapter && tensor.lifetime == program::Lifetime::run &&
          !tensor.is_view() && known.insert(tensor.name).second)
        tensors.push_back(tensor);
  return tensors;
}

ProgramName micro_program(const Job& job, int64_t micro, int64_t accumulation) {
  if (micro == 0) return ProgramName::micro_first;
  const bool is_last = micro + 1 == accumulation && job.find(ProgramName::micro_last) != nullptr;
  return is_last ? ProgramName::micro_last : ProgramName::micro_next;
}

std::vector<StepProgram> step_programs(const Job& job, int64_t accumulation) {
  std::vector<StepProgram> programs;
  const auto add = [&](ProgramName name, int64_t runs) {
    if (const Program* program = job.find(name); program != nullptr && runs > 0)
      programs.push_back({name, program, runs});
  };
  const bool has_last = job.find(ProgramName::micro_last) != nullptr;
  if (job.objective.reference == methods::ReferenceModel::adapter_off)
    add(ProgramName::reference, accumulation);
  add(ProgramName::micro_first, 1);
  add(ProgramName::micro_next, accumulation - (has_last ? 2 : 1));
  add(ProgramName::micro_last, has_last ? 1 : 0);
  add(ProgramName::update, 1);
  return programs;
}

}  // namespace snug::plan
