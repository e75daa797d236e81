#include "bench/calibration_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/ir/builder.h"
#include "program/kinds/product/matmul.h"
#include "program/work/target.h"

namespace snug::bench {
namespace {

using program::DType;

// The sizes of a model that its speed depends on. There are enough layers that a step does not fit
// in the second-level cache, as is the case for a step of a deep model.
struct Sizes {
  int64_t hidden;
  int64_t mlp;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
  int64_t vocab;
  int64_t layers;
};

constexpr Sizes kMinimal{128, 384, 2, 1, 64, 1024, 1};
constexpr Sizes kTiny{256, 768, 4, 2, 64, 4096, 4};
constexpr Sizes kSmall{512, 1536, 8, 4, 64, 32768, 3};
constexpr Sizes kWide{768, 2048, 12, 12, 64, 8192, 3};
constexpr Sizes kBroad{1024, 2816, 16, 4, 64, 2048, 1};
constexpr Sizes kMedium{1024, 4096, 16, 4, 64, 32768, 2};
constexpr Sizes kLarge{2048, 8192, 32, 4, 64, 8192, 1};
constexpr Sizes kLargeVocabulary{1024, 2048, 8, 1, 128, 131072, 1};
constexpr Sizes kHuge{4096, 11008, 32, 8, 128, 4096, 1};
constexpr Sizes kHugeDeep{4096, 16384, 32, 8, 128, 65536, 2};

models::ModelConfig config_of(const Sizes& sizes) {
  models::ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = sizes.hidden;
  config.num_layers = sizes.layers;
  config.num_heads = sizes.heads;
  config.num_kv_heads = sizes.kv_heads;
  config.head_dim = sizes.head_dim;
  config.intermediate_size = sizes.mlp;
  config.vocab_size = sizes.vocab;
  config.max_position = 1 << 20;
  config.tied_embeddings = true;
  return config;
}

CalibrationStep step_of(const Sizes& sizes, int64_t tokens, int64_t segment_tokens, DType compute) {
  CalibrationStep step;
  step.spec.model = config_of(sizes);
  step.spec.compute = compute;
  step.spec.rows = 1;
  step.spec.row_tokens = tokens;
  step.segment_tokens = std::min(segment_tokens, tokens);
  step.spec.row_segments = tokens / step.segment_tokens;
  step.spec.lora.row_tokens = tokens;
  step.spec.deterministic = false;  // the default of jobs: a library may sum in any order
  return step;
}

// All weights train. A second micro-batch makes sure that adding to gradients is measured too.
CalibrationStep full(const Sizes& sizes, int64_t tokens, int64_t segment_tokens, DType compute) {
  CalibrationStep step = step_of(sizes, tokens, segment_tokens, compute);
  step.spec.method = methods::MethodKind::full;
  step.spec.accumulation = 2;
  return step;
}

// Weights, moments and gradients in bf16, with stochastic rounding.
CalibrationStep full_bf16(const Sizes& sizes, int64_t tokens, int64_t segment_tokens) {
  CalibrationStep step = full(sizes, tokens, segment_tokens, DType::bf16);
  step.spec.update.optimizer = methods::OptimizerKind::adamw_bf16;
  step.spec.update.gradient = DType::bf16;
  return step;
}

// Moments in 8 bits. Depending on the sizes, the weights fit in caches or do not.
CalibrationStep full_8bit(const Sizes& sizes, int64_t tokens, DType compute) {
  CalibrationStep step = full(sizes, tokens, tokens, compute);
  step.spec.accumulation = 1;
  step.spec.update.optimizer = methods::OptimizerKind::adamw_8bit;
  step.spec.update.gradient = compute;
  return step;
}

// Steps of the other optimizers, whose operations have rates of their own.
void add_optimizers(const Sizes& sizes, DType compute, std::vector<CalibrationStep>& steps) {
  for (const auto optimizer : {methods::OptimizerKind::lion, methods::OptimizerKind::adafactor}) {
    steps.push_back(full(sizes, 128, 128, compute));
    steps.back().spec.accumulation = 1;
    steps.back().spec.update.optimizer = optimizer;
  }
}

// Makes the model as deep as real models of this width: saved activations and gradients then no
// longer fit in any cache, which a few layers would not show. In f32, products are so slow that
// this does not matter.
CalibrationStep deep(CalibrationStep step) {
  if (step.spec.compute != DType::bf16) return step;
  step.spec.model.num_layers = step.spec.row_tokens.decoder() <= 1024 ? 12 : 8;
  step.least_repeats = 2;
  return step;
}

// Stores the base of a LoRA step in 4 bits; with `nested`, its scales are quantised as well.
CalibrationStep quantized(CalibrationStep step, bool nested) {
  step.spec.quantization = passes::QuantizeOptions{.nested = nested, .kept = {}};
  return step;
}

struct LoraShape {
  int64_t r;
  bool dropout = false;
  int64_t accumulation = 1;
  // With recomputation, operands are in memory that the previous layer has just used.
  passes::RecomputeMode recompute = passes::RecomputeMode::none;
};
constexpr auto kLayer = passes::RecomputeMode::layer;

CalibrationStep lora(const Sizes& sizes, int64_t tokens, int64_t segment_tokens, DType compute,
                     const LoraShape& shape) {
  CalibrationStep step = step_of(sizes, tokens, segment_tokens, compute);
  step.spec.method = methods::MethodKind::lora;
  step.spec.lora.r = shape.r;
  step.spec.lora.dropout = shape.dropout ? 0.1 : 0.0;
  step.spec.accumulation = shape.accumulation;
  step.spec.recompute = shape.recompute;
  return step;
}

// Gradients of the LoRA factors are in the compute type, as with 8-bit moments.
CalibrationStep lora_8bit(const Sizes& sizes, int64_t tokens, DType compute,
                          const LoraShape& shape) {
  CalibrationStep step = lora(sizes, tokens, tokens, compute, shape);
  step.spec.update.optimizer = methods::OptimizerKind::adamw_8bit;
  step.spec.update.gradient = compute;
  return step;
}

// Adds biases, and gives the head weights of its own.
CalibrationStep biased(CalibrationStep step) {
  models::ModelConfig& model = step.spec.model;
  model.attention_bias = model.mlp_bias = true;
  model.tied_embeddings = false;
  return step;
}

// Replaces the mlp by eight experts, two of which run for each token.
CalibrationStep mixture(CalibrationStep step) {
  models::ModelConfig& model = step.spec.model;
  model.model_type = "mixtral";
  model.num_experts = 8;
  model.chosen_experts = 2;
  model.expert_size = model.intermediate_size;
  model.tied_embeddings = false;
  return step;
}

// Recomputes layers, so that a layer's output is added in place.
CalibrationStep layers_again(CalibrationStep step) {
  step.spec.recompute = kLayer;
  return step;
}

// For the quick grid: every kind of operation, at small shapes.
void add_kinds(DType compute, std::vector<CalibrationStep>& steps) {
  steps.push_back(full(kMinimal, 128, 64, compute));
  steps.push_back(lora(kMinimal, 128, 64, compute,
                       {.r = 8, .dropout = true, .accumulation = 2, .recompute = kLayer}));
  steps.push_back(full_8bit(kMinimal, 256, compute));
  for (const bool nested : {true, false})
    steps.push_back(quantized(lora(kTiny, 256, 256, compute, {.r = 8}), nested));
  steps.push_back(biased(full(kTiny, 256, 64, compute)));
  steps.push_back(layers_again(full(kMinimal, 256, 64, compute)));
  steps.push_back(lora_8bit(kTiny, 512, compute, {.r = 4, .accumulation = 2}));
  add_optimizers(kMinimal, compute, steps);
}

// For the quick grid: larger shapes of the operations that take most of the time.
void add_shapes(DType compute, std::vector<CalibrationStep>& steps) {
  // This step comes first and has a small vocabulary, since gradients of weights in the type of the
  // products have rates of their own. With only the smallest shapes measured, larger ones would
  // look slower by half than they are, and the step that corrects this would look too long to be
  // measured.
  steps.push_back(full_8bit(kBroad, 512, compute));
  steps.push_back(lora(kTiny, 1024, 256, compute,
                       {.r = 32, .dropout = true, .accumulation = 2, .recompute = kLayer}));
  steps.push_back(lora(kSmall, 256, 256, compute, {.r = 16, .recompute = kLayer}));
  steps.push_back(lora(kWide, 512, 512, compute, {.r = 16, .dropout = true}));
  steps.push_back(full(kSmall, 256, 256, compute));
  steps.push_back(quantized(lora(kMedium, 256, 128, compute, {.r = 8}), false));
  steps.push_back(lora(kTiny, 4096, 1024, compute, {.r = 8}));
  steps.push_back(lora(kTiny, 128, 128, compute, {.r = 16, .accumulation = 2}));
  steps.push_back(lora_8bit(kTiny, 256, compute, {.r = 16, .accumulation = 2}));
  // Documents that are shorter than a tile of the attention kernels.
  steps.push_back(lora(kTiny, 512, 16, compute, {.r = 8}));
  steps.push_back(full(kMinimal, 256, 8, compute));
  steps.push_back(full(kMinimal, 256, 4, compute));
}

// The most informative steps first: those that do not fit in the time are left out.
std::vector<CalibrationStep> quick_steps(bool bf16) {
  const DType compute = bf16 ? DType::bf16 : DType::f32;
  std::vector<CalibrationStep> steps;
  add_kinds(compute, steps);
  if (bf16) steps.push_back(biased(full_bf16(kMinimal, 256, 256)));
  add_shapes(compute, steps);
  if (bf16) add_kinds(DType::f32, steps);
  for (CalibrationStep& step : steps) {
    step.least_repeats = 1;
    step.least_seconds = 0.05;
  }
  return steps;
}

// The coarse grid, in the given element type.
void add_coarse(DType compute, std::vector<CalibrationStep>& steps) {
  for (const int64_t tokens : {256, 1024, 4096}) {
    steps.push_back(full(kTiny, tokens, tokens / 4, compute));
    steps.push_back(lora(kTiny, tokens, tokens / 4, compute, {.r = 8}));
    steps.push_back(lora(kTiny, tokens, 64, compute,
                         {.r = 32, .dropout = true, .accumulation = 2, .recompute = kLayer}));
    // Documents that are shorter than a tile of the attention kernels.
    for (const int64_t segment : {4, 8, 16, 32})
      steps.push_back(lora(kTiny, tokens, segment, compute, {.r = 16}));
  }
  for (const int64_t tokens : {256, 1024}) {
    steps.push_back(deep(full(kSmall, tokens, tokens, compute)));
    steps.push_back(lora(kSmall, tokens, tokens, compute, {.r = 16, .recompute = kLayer}));
    steps.push_back(lora(kMedium, tokens, tokens / 2, compute, {.r = 8}));
  }
  steps.push_back(biased(full(kTiny, 1024, 256, compute)));
  steps.push_back(layers_again(full(kTiny, 1024, 256, compute)));
  // So few heads that keys and values are narrower than Snug's own kernels can multiply.
  steps.push_back(lora(kMinimal, 512, 64, compute,
                       {.r = 8, .dropout = true, .accumulation = 2, .recompute = kLayer}));
  add_optimizers(kTiny, compute, steps);
  for (const Sizes& sizes : {kTiny, kMedium}) {
    steps.push_back(full_8bit(sizes, 256, compute));
    steps.push_back(quantized(lora(sizes, 512, 512, compute, {.r = 16}), sizes.hidden < 512));
    steps.push_back(quantized(lora(sizes, 512, 512, compute, {.r = 16}), sizes.hidden >= 512));
  }
}

// Rows shorter than those of the coarse grid, sums over several micro-batches, and gradients of
// LoRA factors in both types.
void add_short_rows(DType compute, std::vector<CalibrationStep>& steps) {
  for (const int64_t tokens : {64, 128, 192, 384}) {
    steps.push_back(lora(kTiny, tokens, tokens, compute, {.r = 16, .accumulation = 2}));
    steps.push_back(lora(kWide, tokens, tokens, compute, {.r = 32, .accumulation = 2}));
    steps.push_back(lora_8bit(kSmall, tokens, compute, {.r = 4, .accumulation = 2}));
  }
  // Deep models exceed the caches even with short rows.
  steps.push_back(deep(lora(kSmall, 128, 128, compute, {.r = 16})));
  steps.push_back(deep(lora(kWide, 256, 256, compute, {.r = 16})));
  for (const int64_t tokens : {64, 128}) {
    steps.push_back(full(kTiny, tokens, tokens, compute));
    steps.push_back(full(kWide, tokens, tokens, compute));
  }
  for (const int64_t r : {8, 32}) {
    steps.push_back(lora_8bit(kTiny, 512, compute, {.r = r, .accumulation = 2}));
    steps.push_back(lora_8bit(kWide, 384, compute, {.r = r, .accumulation = 2}));
    steps.push_back(lora_8bit(kMedium, 1024, compute, {.r = r, .accumulation = 2}));
  }
}

void add_fine(DType compute, std::vector<CalibrationStep>& steps) {
  steps.push_back(full(kTiny, 8192, 512, compute));
  steps.push_back(lora(kTiny, 8192, 2048, compute, {.r = 64}));
  steps.push_back(full(kSmall, 4096, 128, compute));
  steps.push_back(lora(kSmall, 4096, 512, compute, {.r = 64, .dropout = true}));
  for (const int64_t tokens : {512, 2048}) {
    steps.push_back(deep(full(kWide, tokens, 32, compute)));
    steps.push_back(deep(lora(kWide, tokens, 512, compute, {.r = 16, .dropout = true})));
    steps.push_back(deep(lora(kSmall, tokens, 64, compute, {.r = 8})));
    steps.push_back(lora(kSmall, tokens, 16, compute, {.r = 8}));
    steps.push_back(lora(kWide, tokens, 64, compute,
                         {.r = 64, .dropout = false, .accumulation = 2, .recompute = kLayer}));
  }
  steps.push_back(lora(kWide, 8192, 8192, compute, {.r = 8}));
  steps.push_back(full(kMedium, 512, 512, compute));
  steps.push_back(full(kMedium, 2048, 256, compute));
  steps.push_back(lora(kMedium, 4096, 4096, compute, {.r = 32}));
}

void add_large(std::vector<CalibrationStep>& steps) {
  steps.push_back(full_8bit(kLargeVocabulary, 256, DType::bf16));
  for (const int64_t tokens : {256, 1024}) {
    steps.push_back(biased(full_bf16(kTiny, tokens * 2, 256)));
    steps.push_back(full_bf16(kMedium, tokens, 128));
    steps.push_back(full(kLarge, tokens, tokens, DType::bf16));
    steps.push_back(lora(kLarge, tokens, 256, DType::bf16, {.r = 16}));
    steps.push_back(lora(kLargeVocabulary, tokens, 512, DType::bf16, {.r = 64}));
  }
  steps.push_back(full_bf16(kLargeVocabulary, 512, 256));
  steps.push_back(full_bf16(kHuge, 256, 256));
  steps.push_back(lora(kHuge, 512, 512, DType::bf16, {.r = 8}));
  steps.push_back(lora(kLarge, 2048, 2048, DType::bf16, {.r = 64}));
  for (CalibrationStep& step : steps)
    if (step.spec.model.hidden_size >= 2048) step.least_repeats = 2;
}

// Micro-batches that fill a GPU: its rates go on rising far beyond the sizes that a CPU is measured
// with.
void add_card(std::vector<CalibrationStep>& steps) {
  for (const int64_t tokens : {4096, 16384}) {
    steps.push_back(full_8bit(kHugeDeep, tokens, DType::bf16));
    steps.push_back(lora(kHugeDeep, tokens, tokens / 2, DType::bf16, {.r = 16}));
    steps.push_back(lora(kLarge, tokens, tokens, DType::bf16, {.r = 16, .recompute = kLayer}));
    steps.push_back(quantized(lora(kHugeDeep, tokens, 1024, DType::bf16, {.r = 16}), true));
    // On a GPU, kernels of Snug's own multiply experts, and no other step runs them.
    steps.push_back(mixture(lora(kLarge, tokens, 1024, DType::bf16, {.r = 16})));
    steps.push_back(mixture(full_8bit(kLarge, tokens, DType::bf16)));
  }
}

bool multiplies_bf16(const program::Target& target) {
  program::Builder builder("probe");
  const auto a = builder.activation("a", {64, 64}, DType::bf16);
  const auto c = builder.activation("c", {64, 64}, DType::bf16);
  builder.emit(program::Matmul{.transpose_b = true}, {a, a}, {c});
  const program::Program probe = builder.take();
  return target.runs({probe, probe.operations.front()});
}

}  // namespace

std::string describe(const CalibrationStep& step) {
  const plan::TrainingSpec& spec = step.spec;
  const char* base = "";
  if (spec.quantization) base = spec.quantization->nested ? "4-bit (nested) " : "4-bit ";
  const std::string method =
      spec.is_adapted() ? fmt::format("{}lora r {}", base, spec.lora.r) : "full";
  const bool is_usual = spec.update.optimizer == methods::UpdateOptions{}.optimizer;
  const std::string optimizer =
      is_usual ? "" : fmt::format(" {}", base::word_of(spec.update.optimizer));
  const std::string experts =
      spec.model.num_experts > 0 ? fmt::format(" x {} experts", spec.model.num_experts) : "";
  return fmt::format("{}{}, hidden {} mlp {}{} vocab {}, {} tokens in segments of {}, {}", method,
                     optimizer, spec.model.hidden_size, spec.model.intermediate_size, experts,
                     spec.model.vocab_size, spec.row_tokens.decoder(), step.segment_tokens,
                     base::name_of(spec.compute));
}

std::vector<CalibrationStep> calibration_steps(const program::Target& target, Grid grid) {
  const bool bf16 = multiplies_bf16(target);
  if (grid == Grid::quick) return quick_steps(bf16);
  std::vector<CalibrationStep> steps;
  if (!bf16) {
    add_coarse(DType::f32, steps);
    add_short_rows(DType::f32, steps);
    add_fine(DType::f32, steps);
    return steps;
  }
  if (target.device()) {
    // The steps most like real jobs on a GPU come first: when time is short, the rest is left out.
    add_card(steps);
    add_large(steps);
  }
  add_coarse(DType::bf16, steps);
  add_short_rows(DType::bf16, steps);
  add_fine(DType::bf16, steps);
  if (!target.device()) add_large(steps);
  add_coarse(DType::f32, steps);
  return steps;
}

}  // namespace snug::bench
