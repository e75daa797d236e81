// What runs is what the program says: the trace of every program of jobs of every kind, held
// against the program; and that the comparison sees each decision.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <utility>

#include "every_trace.h"
#include "program/kinds/product/grouped_matmul.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using backends::Trace;
using program::DType;
using program::Program;
using testing::expect_changes_seen;
using testing::fill_batch;
using testing::is_run_by_backends;
using testing::lacks_bf16;
using testing::pack_rows;
using testing::TinyOptions;
using testing::trained_of;
using testing::typed_name;

struct Case {
  const char* name;
  TinyOptions options;
  std::function<void(plan::TrainingSpec&)> change = [](plan::TrainingSpec&) {};
};

TinyOptions lora() {
  TinyOptions options;
  options.method = formats::Method::lora;
  options.compute = DType::bf16;
  return options;
}

TinyOptions adapter(bool in_4_bits) {
  TinyOptions options;
  options.method = formats::Method::adapter;
  options.compute = DType::bf16;
  options.prompt = {.tokens = 3, .layers = 1};
  if (in_4_bits) options.quantization.emplace();
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

TinyOptions dora(TinyOptions options) {
  options.dora = true;
  return options;
}

TinyOptions full(DType compute, methods::OptimizerKind optimizer,
                 std::vector<std::string> frozen = {}) {
  TinyOptions options;
  options.compute = compute;
  options.optimizer = optimizer;
  options.frozen = std::move(frozen);
  return options;
}

TinyOptions experts(DType compute, bool are_balanced = false) {
  TinyOptions options = full(compute, methods::OptimizerKind::adamw);
  models::ModelConfig& model = options.model;
  model.router_loss = are_balanced;
  model.router_coefficient = 0.01;
  model.model_type = "mixtral";
  model.num_experts = 4;
  model.chosen_experts = 2;
  model.expert_size = model.intermediate_size;
  return options;
}

const std::vector<std::string> kFirstLayer{"model.embed_tokens.weight",
                                           "model.layers.0.input_layernorm.weight",
                                           "model.layers.0.self_attn.q_proj.weight",
                                           "model.layers.0.self_attn.k_proj.weight",
                                           "model.layers.0.self_attn.v_proj.weight",
                                           "model.layers.0.self_attn.o_proj.weight",
                                           "model.layers.0.post_attention_layernorm.weight",
                                           "model.layers.0.mlp.gate_proj.weight",
                                           "model.layers.0.mlp.up_proj.weight",
                                           "model.layers.0.mlp.down_proj.weight"};

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
      {"full, lion", full(DType::bf16, OptimizerKind::lion)},
      {"full, adafactor", full(DType::bf16, OptimizerKind::adafactor)},
      {"full, muon", full(DType::bf16, OptimizerKind::muon)},
      {"full, update in the backward pass", full(DType::bf16, OptimizerKind::adamw),
       [](TrainingSpec& spec) {
         spec.update_in_backward = true;
         spec.update.max_grad_norm = 0;
       }},
      {"full, a frozen layer and embedding", full(DType::bf16, OptimizerKind::adamw, kFirstLayer)},
      {"full, a frozen head", full(DType::bf16, OptimizerKind::adamw, {"lm_head.weight"})},
      {"experts f32, two micro-batches", experts(DType::f32),
       [](TrainingSpec& spec) { spec.accumulation = 2; }},
      {"experts bf16, layer", experts(DType::bf16),
       [](TrainingSpec& spec) { spec.recompute = RecomputeMode::layer; }},
      {"balanced experts f32, two micro-batches", experts(DType::f32, true),
       [](TrainingSpec& spec) { spec.accumulation = 2; }},
      {"balanced experts bf16, layer, packed rows", experts(DType::bf16, true),
       [](TrainingSpec& spec) {
         spec.recompute = RecomputeMode::layer;
         pack_rows(spec);
       }},
      {"full bf16, packed rows", full(DType::bf16, OptimizerKind::adamw), pack_rows},
      {"lora, packed rows", lora(), pack_rows},
      {"lora", lora()},
      {"adapter", adapter(false)},
      {"adapter, packed rows", adapter(false), pack_rows},
      {"adapter in 4 bits, layer", adapter(true),
       [](TrainingSpec& spec) { spec.recompute = RecomputeMode::layer; }},
      {"adapter, offloading of attention too", adapter(false),
       [](TrainingSpec& spec) {
         spec.recompute = RecomputeMode::all_but_attention;
         spec.activation_offloading = true;
       }},
      {"adapter_v2, evaluation", adapter(false),
       [](TrainingSpec& spec) {
         spec.method = formats::Method::adapter_v2;
         spec.prompt.adjusts_linears = true;
         spec.evaluate = true;
       }},
      {"adapter_v2 in 4 bits, layer", adapter(true),
       [](TrainingSpec& spec) {
         spec.method = formats::Method::adapter_v2;
         spec.prompt.adjusts_linears = true;
         spec.recompute = RecomputeMode::layer;
       }},
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
      {"dora, layer, two micro-batches", dora(lora()),
       [](TrainingSpec& spec) {
         spec.recompute = RecomputeMode::layer;
         spec.accumulation = 2;
       }},
      {"dora in 4 bits with dropout, weights stream", dora(qlora(true)),
       [](TrainingSpec& spec) {
         spec.lora.dropout = 0.1;
         spec.streaming = {.params = true, .threshold_bytes = 0};
       }},
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

// Of operations that make the logits themselves; the reference makes them all.
void expect_extents(const Program& program, const std::vector<Trace>& traces,
                    const std::string& backend, int64_t tokens) {
  for (size_t i = 0; i < traces.size(); ++i) {
    const program::Kind kind = program.operations[i].kind();
    if (!program::has_expansion(kind) || !program::traits_of(kind).has_extent()) continue;
    ASSERT_TRUE(traces[i].extent) << "operation " << i << " of " << program.name;
    EXPECT_EQ(traces[i].by_capacity, backend == "reference");
    EXPECT_EQ(traces[i].extent->rows, backend == "reference" ? tokens : trained_of(tokens));
    const int64_t rows =
        std::accumulate(traces[i].pieces.begin(), traces[i].pieces.end(), int64_t{0});
    EXPECT_GE(rows, traces[i].extent->rows) << "rows of loss are left out";
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
        expect_extents(program, traces, backend_name, spec.micro_tokens());
        expect_changes_seen(planned, traces);
      }
    }
}

#ifdef SNUG_TEST_CPU_BACKEND
// Experts' last rows, of which these jobs have none by another algorithm than the others: a trace
// that has some must say which algorithm that was.
TEST(Traces, RowsOfARestNeedTheirAlgorithm) {
  const auto backend = backends::open_backend("cpu", {.threads = 1});
  const plan::Job job = plan::plan_training(testing::spec_of(experts(DType::f32)), *backend);
  Executor executor(job, *backend);
  const Program& program = *job.find(program::ProgramName::micro_first);
  fill_batch(program, executor);
  const std::vector<Trace> traces = executor.run_traced(typed_name(program));
  const Planned planned{program, executor.bounds(typed_name(program))};
  int grouped = 0;
  for (size_t i = 0; i < traces.size(); ++i) {
    Trace changed = traces[i];
    if (!program.operations[i].attributes.is<program::GroupedMatmul>()) continue;
    ++grouped;
    ASSERT_EQ(changed.pieces.size(), 2U);
    changed.pieces = {changed.pieces[0] - 1, changed.pieces[1] + 1};
    ASSERT_EQ(differences(planned, i, changed).size(), 1U);
    EXPECT_NE(differences(planned, i, changed)[0].find("says nothing of rest_algorithm"),
              std::string::npos);
  }
  EXPECT_GT(grouped, 0);
}
#endif

TEST(Traces, SoDoPrefillAndDecode) {
  for (const std::string& backend_name : backend_names())
    for (const bool quantized : {false, true}) {
      SCOPED_TRACE(backend_name);
      plan::InferenceSpec spec;
      spec.model = qlora(false).model;
      spec.method = methods::MethodKind::lora;
      spec.lora.target_modules = {"all-linear"};
      if (quantized) spec.quantization = passes::QuantizeOptions{};
      spec.shape.sequences = 2;
      spec.shape.capacity = 300;
      spec.shape.prefill_tokens = 32;
      if (lacks_bf16(backend_name)) spec.compute = DType::f32;
      const auto backend = backends::open_backend(backend_name, {.threads = 2});
      const plan::Job job = plan::plan_inference(spec, *backend);
      Executor executor(job, *backend);
      for (const Program& program : job.programs) {
        if (!is_run_by_backends(program)) continue;
        fill_batch(program, executor);
        const Planned planned{program, executor.bounds(typed_name(program))};
        EXPECT_EQ(differences(planned, executor.run_traced(typed_name(program))),
                  std::vector<std::string>{});
      }
    }
}

}  // namespace
}  // namespace snug::runtime
