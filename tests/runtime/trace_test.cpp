// What runs is what the program says: the trace of every program of jobs of every kind, held
// against the program; and that the comparison sees each decision, and a backend that does
// otherwise.
#include <gtest/gtest.h>

#include <functional>

#include "program/decisions.h"
#include "program/kind.h"
#include "runtime/trace_check.h"
#include "tiny_run.h"
#ifdef SNUG_TEST_CPU_BACKEND
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/isa.h"
#endif

namespace snug::runtime {
namespace {

using backends::Trace;
using program::DType;
using program::Program;
using testing::TinyOptions;

struct Case {
  const char* name;
  TinyOptions options;
  std::function<void(plan::TrainingSpec&)> change = [](plan::TrainingSpec&) {};
};

TinyOptions lora() {
  TinyOptions options;
  options.method = plan::MethodKind::lora;
  options.compute = DType::bf16;
  return options;
}

TinyOptions qlora(bool nested) {
  TinyOptions options = lora();
  options.model.hidden_size = 64;
  options.model.num_heads = 4;
  options.model.head_dim = 16;
  options.model.intermediate_size = 128;
  options.quantization.emplace();
  options.quantization->nested = nested;
  return options;
}

TinyOptions full(DType compute, methods::OptimizerKind optimizer) {
  TinyOptions options;
  options.compute = compute;
  options.optimizer = optimizer;
  return options;
}

const std::vector<Case>& cases() {
  using methods::OptimizerKind;
  using passes::RecomputeMode;
  using plan::TrainingSpec;
  static const std::vector<Case> kCases{
      {"full f32", full(DType::f32, OptimizerKind::adamw)},
      {"full bf16, two micro-batches", full(DType::bf16, OptimizerKind::adamw),
       [](TrainingSpec& spec) { spec.accumulation = 2; }},
      {"full, all in bf16", full(DType::bf16, OptimizerKind::adamw_bf16),
       [](TrainingSpec& spec) { spec.update.gradient = DType::bf16; }},
      {"full, moments of 8 bits", full(DType::bf16, OptimizerKind::adamw_8bit)},
      {"full, update in the backward pass", full(DType::bf16, OptimizerKind::adamw),
       [](TrainingSpec& spec) {
         spec.update_in_backward = true;
         spec.update.max_grad_norm = 0;
       }},
      {"lora", lora()},
      {"lora with dropout and evaluation", lora(),
       [](TrainingSpec& spec) {
         spec.lora.dropout = 0.1;
         spec.evaluate = true;
       }},
      {"lora, gate_up", lora(),
       [](TrainingSpec& spec) { spec.recompute = RecomputeMode::gate_up; }},
      {"lora, attention again", lora(),
       [](TrainingSpec& spec) { spec.recompute = RecomputeMode::attention; }},
      {"lora, layer", lora(), [](TrainingSpec& spec) { spec.recompute = RecomputeMode::layer; }},
      {"lora, offloading", lora(),
       [](TrainingSpec& spec) {
         spec.recompute = RecomputeMode::layer;
         spec.activation_offloading = true;
       }},
      {"lora, offloading of attention too", lora(),
       [](TrainingSpec& spec) {
         spec.recompute = RecomputeMode::all_but_attention;
         spec.activation_offloading = true;
       }},
      {"full, weights and optimizer state stream", full(DType::bf16, OptimizerKind::adamw),
       [](TrainingSpec& spec) {
         spec.streaming = {
             .params = true, .optimizer = true, .threshold_bytes = 0, .window_bytes = 100'000};
       }},
      {"full, updated on the host", full(DType::bf16, OptimizerKind::adamw_8bit),
       [](TrainingSpec& spec) {
         spec.streaming = {.params = true,
                           .optimizer = true,
                           .update_on_host = true,
                           .threshold_bytes = 0,
                           .window_bytes = 100'000};
       }},
      {"full, updated on the host in the backward pass", full(DType::bf16, OptimizerKind::adamw),
       [](TrainingSpec& spec) {
         spec.update_in_backward = true;
         spec.update.max_grad_norm = 0;
         spec.streaming = {.optimizer = true, .update_on_host = true, .threshold_bytes = 0};
       }},
      {"qlora, weights stream", qlora(true),
       [](TrainingSpec& spec) { spec.streaming = {.params = true, .threshold_bytes = 0}; }},
      {"qlora", qlora(false)},
      {"qlora, nested", qlora(true)}};
  return kCases;
}

std::vector<std::string> backend_names() {
#ifdef SNUG_TEST_CPU_BACKEND
  return {"reference", "cpu"};
#else
  return {SNUG_TEST_BACKEND};
#endif
}

// The cpu backend on a processor that does not multiply bf16 trains in f32.
bool lacks_bf16([[maybe_unused]] const std::string& backend) {
#ifdef SNUG_TEST_CPU_BACKEND
  return backend == "cpu" && !backends::cpu::has_bf16_products(backends::cpu::detect_isa());
#else
  return false;
#endif
}

constexpr int64_t kTrained = 3;  // tokens of a batch that carry loss

// perform_test.cpp is about the others.
bool is_run_by_backends(const Program& program) {
  return program.operations.empty() || !program::traits_of(program.operations.front()).by_runtime;
}

program::ProgramName typed_name(const Program& program) {
  return base::from_word<program::ProgramName>(program.name).value();
}

// A batch of one segment.
void fill_batch(const Program& program, Executor& executor) {
  if (program.find("host.targets") == program::kNone) return;
  executor.await_inputs(typed_name(program));
  const backends::Buffer& targets = executor.tensor(typed_name(program), "host.targets");
  for (int64_t i = 0; i < targets.elements(); ++i) targets.as<int32_t>()[i] = i < kTrained ? 1 : -1;
  auto* bounds = executor.tensor(typed_name(program), "host.query_bounds").as<int32_t>();
  bounds[0] = 0;
  bounds[1] = static_cast<int32_t>(targets.elements());
}

// Of operations that make the logits themselves; the reference makes them all.
void expect_extents(const Program& program, const std::vector<Trace>& traces,
                    const std::string& backend) {
  for (size_t i = 0; i < traces.size(); ++i) {
    const program::Traits& traits = program::traits_of(program.operations[i]);
    if (!traits.is_fused || !traits.has_extent()) continue;
    ASSERT_TRUE(traces[i].extent) << "operation " << i << " of " << program.name;
    EXPECT_EQ(traces[i].by_capacity, backend == "reference");
    EXPECT_EQ(traces[i].extent->rows, backend == "reference" ? 8 : kTrained);
  }
}

// Each decision of each operation, changed in the trace alone, is seen.
void expect_changes_seen(const Planned& planned, const std::vector<Trace>& traces) {
  const Program& program = planned.program;
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const size_t decisions = program::decisions_of(program.operations[i]).size();
    for (size_t d = 0; d < decisions; ++d) {
      std::vector<Trace> changed = traces;
      changed[i].decisions[d].second += 1;
      EXPECT_EQ(differences(planned, changed).size(), 1U);
    }
    std::vector<Trace> elsewhere = traces;
    elsewhere[i].channel = program::Channel::interconnect;
    EXPECT_EQ(differences(planned, elsewhere).size(), 1U);
  }
}

TEST(Traces, EveryProgramRunsAsItIsWritten) {
  for (const std::string& backend_name : backend_names())
    for (const Case& each : cases()) {
      SCOPED_TRACE(backend_name + ": " + each.name);
      plan::TrainingSpec spec = testing::spec_of(each.options);
      each.change(spec);
      if (lacks_bf16(backend_name)) {
        if (spec.update.optimizer == methods::OptimizerKind::adamw_bf16) continue;
        spec.compute = DType::f32;
      }
      const auto backend = backends::open_backend(backend_name, {.threads = 2});
      const plan::Job job = plan::plan_training(spec, *backend);
      Executor executor(job, *backend);
      for (const Program& program : job.programs) {
        if (!is_run_by_backends(program)) continue;
        fill_batch(program, executor);
        const std::vector<Trace> traces = executor.run_traced(typed_name(program));
        const Planned planned{program, executor.bounds(typed_name(program))};
        EXPECT_EQ(differences(planned, traces), std::vector<std::string>{});
        expect_extents(program, traces, backend_name);
        expect_changes_seen(planned, traces);
      }
    }
}

TEST(Traces, SoDoPrefillAndDecode) {
  for (const std::string& backend_name : backend_names())
    for (const bool quantized : {false, true}) {
      SCOPED_TRACE(backend_name);
      plan::InferenceSpec spec;
      spec.model = qlora(false).model;
      spec.adapted = true;
      spec.lora.target_modules = {"all-linear"};
      if (quantized) spec.quantization = passes::QuantizeOptions{};
      spec.sequences = 2;
      spec.capacity = 300;
      spec.prefill_tokens = 32;
      if (lacks_bf16(backend_name)) spec.compute = DType::f32;
      const auto backend = backends::open_backend(backend_name, {.threads = 2});
      const plan::Job job = plan::plan_inference(spec, *backend);
      Executor executor(job, *backend);
      for (const Program& program : job.programs) {
        if (!is_run_by_backends(program)) continue;
        const Planned planned{program, executor.bounds(typed_name(program))};
        EXPECT_EQ(differences(planned, executor.run_traced(typed_name(program))),
                  std::vector<std::string>{});
      }
    }
}

#ifdef SNUG_TEST_CPU_BACKEND
// Does what it is told except for one thing.
class Disobedient final : public backends::cpu::CpuBackend {
 public:
  enum class Fault { none, smaller_chunks, shorter_segments, skips, repeats };
  explicit Disobedient(Fault fault) : CpuBackend({.threads = 1}), fault_(fault) {}

  std::unique_ptr<backends::Prepared> prepare(const program::OperationView& view) override {
    program::Operation operation = view.operation;
    auto* loss = std::get_if<program::LinearCrossEntropyTrain>(&operation.attributes);
    if (fault_ == Fault::smaller_chunks && loss != nullptr) loss->chunk_rows = 1;
    return CpuBackend::prepare({view.program, operation});
  }
  void run(const backends::Invocation& invocation) override {
    const bool is_norm = std::holds_alternative<program::RmsNorm>(*invocation.attributes);
    if (is_norm && fault_ == Fault::skips) return;
    if (is_norm && fault_ == Fault::repeats) CpuBackend::run(invocation);
    using program::Attention;
    if (const auto* attention = std::get_if<Attention>(invocation.attributes);
        attention != nullptr && fault_ == Fault::shorter_segments)
      --invocation[Attention::kQBounds].as<int32_t>()[1];
    CpuBackend::run(invocation);
  }

 private:
  Fault fault_;
};

size_t differences_with(Disobedient::Fault fault) {
  Disobedient backend(fault);
  const plan::Job job = plan::plan_training(testing::spec_of({}), backend);
  Executor executor(job, backend);
  const Program& program = *job.find(program::ProgramName::micro_first);
  fill_batch(program, executor);
  const Planned planned{program, executor.bounds(typed_name(program))};
  return differences(planned, executor.run_traced(typed_name(program))).size();
}

TEST(Traces, ABackendThatDoesOtherwiseIsSeen) {
  using Fault = Disobedient::Fault;
  EXPECT_EQ(differences_with(Fault::none), 0U);
  EXPECT_EQ(differences_with(Fault::smaller_chunks), 1U);
  EXPECT_EQ(differences_with(Fault::shorter_segments), 4U) << "attention and its gradient, twice";
  EXPECT_GT(differences_with(Fault::skips), 0U);
  EXPECT_GT(differences_with(Fault::repeats), 0U);
}
#endif

}  // namespace
}  // namespace snug::runtime
