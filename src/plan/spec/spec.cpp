#include "plan/spec/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "formats/quantization/nf4.h"
#include "formats/recipe/method_keys.h"
#include "formats/recipe/recipe.h"
#include "methods/method.h"
#include "methods/optimizer.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"
#include "models/weights.h"
#include "passes/gradient/recompute.h"
#include "plan/job/rank_grid.h"
#include "plan/spec/adapter_widths.h"
#include "plan/spec/frozen_weights.h"
#include "plan/spec/generation_spec.h"
#include "plan/spec/objective_spec.h"
#include "plan/spec/rollout_spec.h"
#include "plan/spec/router_loss.h"
#include "plan/spec/stream_spec.h"
#include "plan/spec/unused_keys.h"
#include "program/ir/builder.h"
#include "program/kinds/product/matmul.h"
#include "program/work/target.h"
#include "text/chat/chat_template.h"

namespace snug::plan {
namespace {

using formats::ComputeDtype;
using formats::Recipe;
using program::DType;

bool multiplies(DType type, const program::Target& target) {
  program::Builder builder("probe");
  const auto a = builder.activation("a", {64, 64}, type);
  const auto b = builder.activation("b", {64, 64}, type);
  const auto c = builder.activation("c", {64, 64}, type);
  builder.emit(program::Matmul{.transpose_b = true}, {a, b}, {c});
  const program::Program probe = builder.take();
  return target.runs({probe, probe.operations.front()});
}

// Muon multiplies in bf16 where the machine supports it, except with fp16, as programs do not mix
// bf16 and fp16.
methods::MuonOptions muon_options(const Recipe& recipe, DType compute,
                                  const program::Target& target) {
  const std::vector<double>& given = recipe.ns_coefficients;
  methods::MuonOptions options{.momentum = recipe.muon_momentum,
                               .nesterov = recipe.nesterov,
                               .steps = recipe.ns_steps,
                               .epsilon = recipe.muon_epsilon,
                               .adjust_learning_rate = recipe.adjust_lr_fn,
                               .bf16 = compute != DType::f16 && multiplies(DType::bf16, target)};
  if (given.size() != options.coefficients.size())
    recipe.fail("ns_coefficients", fmt::format("has {} numbers; expected {}: a, b and c",
                                               given.size(), options.coefficients.size()));
  if (given[0] == 0 || given[1] == 0)
    recipe.fail("ns_coefficients",
                fmt::format("is [{}], but neither a nor b may be 0", fmt::join(given, ", ")));
  std::ranges::copy(given, options.coefficients.begin());
  return options;
}

bool asks_fp16(const Recipe& recipe) { return recipe.compute_dtype == ComputeDtype::fp16; }

methods::LossScaleOptions loss_scale(const Recipe& recipe) {
  if (recipe.loss_scale > 0) return {.first = recipe.loss_scale, .window = 0};
  return {.first = std::ldexp(1.0, static_cast<int>(recipe.initial_scale_power)),
          .window = recipe.loss_scale_window,
          .hysteresis = recipe.hysteresis,
          .least = recipe.min_loss_scale};
}

methods::UpdateOptions update_options(const Recipe& recipe, DType compute,
                                      const program::Target& target) {
  methods::UpdateOptions options;
  options.optimizer = recipe.optim;
  const methods::Optimizer& optimizer = methods::optimizer_of(options.optimizer);
  if (optimizer.needs_bf16 && compute != DType::bf16)
    recipe.fail("optim",
                fmt::format("{} keeps weights in bf16, so it needs compute_dtype=bf16; "
                            "with {} use optim=adamw",
                            base::word_of(recipe.optim),
                            base::word_of(compute == DType::f16 ? formats::ComputeDtype::fp16
                                                                : formats::ComputeDtype::fp32)));
  const bool is_narrow = optimizer.narrow_gradients && compute == DType::bf16;
  options.gradient = is_narrow ? DType::bf16 : DType::f32;
  if (recipe.gradient_dtype == formats::GradientDtype::fp32) options.gradient = DType::f32;
  if (recipe.gradient_dtype == formats::GradientDtype::bf16) {
    if (compute != DType::bf16)
      recipe.fail("gradient_dtype", "bf16 gradients need compute_dtype=bf16");
    options.gradient = DType::bf16;
  }
  options.beta1 = recipe.adam_beta1;
  options.beta2 = recipe.adam_beta2;
  options.epsilon = recipe.adam_epsilon;
  options.decay_rate = recipe.decay_rate;
  options.clip_threshold = recipe.clip_threshold;
  options.weight_decay = recipe.weight_decay;
  options.max_grad_norm = recipe.max_grad_norm;
  options.muon = muon_options(recipe, compute, target);
  if (recipe.loraplus_lr_ratio > 0) {
    options.lora_b_rate = recipe.loraplus_lr_ratio;
    options.lora_embedding_rate =
        recipe.learning_rate > 0 ? recipe.loraplus_lr_embedding / recipe.learning_rate : 0.0;
  }
  options.ema_decay = recipe.ema_decay;
  options.seed = recipe.seed;
  if (compute == DType::f16) options.loss_scale = loss_scale(recipe);
  return options;
}

// A model stored in 4 bits is read as it is, so a recipe may not ask for another format.
void check_storage(const Recipe& recipe, const models::StoredNf4& stored) {
  if (recipe.is_given("load_in_4bit") && !recipe.load_in_4bit)
    recipe.fail("load_in_4bit", "is false, but the folder's weights are stored in 4 bits");
  if (recipe.is_given("double_quant") && recipe.double_quant != stored.double_quant)
    recipe.fail("double_quant", fmt::format("is {}, but the folder is stored with {}; leave it out",
                                            recipe.double_quant, stored.double_quant));
  const bool has_head = !stored.head.empty();
  if (recipe.is_given("load_head_in_4bit") && recipe.load_head_in_4bit != has_head)
    recipe.fail(
        "load_head_in_4bit",
        fmt::format("is {}, but the folder's linears are stored in 4 bits already, its head "
                    "in {}; use the model's folder in 16 bits, or leave it out",
                    recipe.load_head_in_4bit, has_head ? "4" : "16"));
  if (recipe.load_experts_in_4bit)
    recipe.fail("load_experts_in_4bit",
                "is true, but the folder's linears are stored in 4 bits already, its experts in "
                "16; use the model's folder in 16 bits, or leave it out");
}

// Weights in 16 bits have no scales to quantise. A recipe that says so itself (load_in_4bit: false)
// may keep the key: Hugging Face's files list all of them.
void check_unused(const Recipe& recipe) {
  if (recipe.is_given("double_quant") && recipe.double_quant && !recipe.is_given("load_in_4bit"))
    recipe.fail("double_quant",
                "is true, but nothing is stored in 4 bits; set load_in_4bit=true too (in training, "
                "method=qlora), or leave double_quant out");
}

// On a CPU, host and device are the same.
bool may_step_on_host(const Recipe& recipe, const program::Target& target) {
  return target.host_reaches_device() || methods::steps_on_host(recipe.optim, recipe.ema_decay);
}

// Refuses what the optimizer's table row says that it cannot do.
void check_optimizer(const Recipe& recipe, const TrainingSpec& spec,
                     const program::Target& target) {
  const methods::Optimizer& optimizer = methods::optimizer_of(recipe.optim);
  const auto fail = [&](const std::string& problem) {
    recipe.fail("optim", fmt::format("is {}, which {}", base::word_of(recipe.optim), problem));
  };
  if (!optimizer.steps_parts && spec.ranks.shards_state())
    fail(
        fmt::format("needs all of a tensor to step it, but strategy={} gives each device a part; "
                    "use strategy=ddp, or optim=adamw_8bit",
                    base::word_of(recipe.strategy)));
  if (may_step_on_host(recipe, target) ||
      recipe.offload_optimizer != formats::OffloadOptimizer::host)
    return;
  if (optimizer.steps_on_host)
    recipe.fail("ema_decay",
                "asks for averages, which the device alone makes; use offload_optimizer=stream, or "
                "leave one of them out");
  fail("steps weights on the device alone; use offload_optimizer=stream, or optim=adamw_8bit");
}

void check_in_backward(const Recipe& recipe) {
  if (asks_fp16(recipe))
    recipe.fail("optim_in_backward",
                "updates weights before it is known whether all gradients are finite, and with "
                "fp16 a step that has others is skipped as a whole; leave it out, or use "
                "compute_dtype=bf16");
  const bool rows_are_open = recipe.per_device_train_batch_size == 0;  // auto may choose all rows
                                                                       // of a step
  if (!rows_are_open && recipe.gradient_accumulation_steps > 1)
    recipe.fail("optim_in_backward",
                fmt::format("updates each weight within one micro-batch, but "
                            "gradient_accumulation_steps is {}; set it to 1, or leave "
                            "optim_in_backward away and use gradient_dtype=bf16",
                            recipe.gradient_accumulation_steps));
  if (recipe.max_grad_norm > 0)
    recipe.fail("optim_in_backward",
                fmt::format("updates weights before the norm of all gradients is known, so nothing "
                            "can be clipped to max_grad_norm={}; set max_grad_norm=0",
                            recipe.max_grad_norm));
  if (recipe.loraplus_lr_ratio > 0)
    recipe.fail("optim_in_backward",
                "updates weights with one learning rate, and loraplus_lr_ratio asks for several; "
                "leave one of them out");
  if (recipe.ema_decay > 0)
    recipe.fail("optim_in_backward",
                "updates each weight on its own, and ema_decay asks for an average after each "
                "step; leave one of them out");
}

// Whether nothing prevents each update from directly following its gradient, and nobody has
// forbidden it.
bool may_update_in_backward(const Recipe& recipe) {
  return !recipe.is_given("optim_in_backward") && !asks_fp16(recipe) && recipe.max_grad_norm == 0 &&
         recipe.gradient_accumulation_steps == 1 && recipe.loraplus_lr_ratio == 0 &&
         recipe.ema_decay == 0;
}

void check_offloading(const Recipe& recipe) {
  if (!passes::keeps_checkpoints(recipe.recompute) &&
      recipe.recompute != formats::Recompute::automatic)
    recipe.fail("activation_offloading",
                "moves what is kept of recomputed layers to the host; set recompute=layer (or "
                "all_but_attention), leave recompute out, or leave activation_offloading out");
}

passes::StreamOptions streaming(const Recipe& recipe, const program::Target& target) {
  using formats::OffloadOptimizer;
  passes::StreamOptions options{.params = recipe.offload_params,
                                .optimizer = recipe.offload_optimizer != OffloadOptimizer::none,
                                .threshold_bytes = recipe.offload_threshold,
                                .window_bytes = recipe.offload_window};
  if (options.window_bytes > 0 && target.host_reaches_device())
    recipe.fail("offload_window",
                "is for a card; on a processor the host's memory is the device's, and copies are "
                "made when they are needed; leave it out");
  // If it is open where updates run, plan with the choice that takes less device memory until it is
  // made (choose_streaming.h).
  options.update_on_host =
      recipe.offload_optimizer == OffloadOptimizer::host ||
      (recipe.offload_optimizer == OffloadOptimizer::automatic && may_step_on_host(recipe, target));
  return options;
}

// The bounds of documents count the tokens of a micro-batch in 32 bits.
void check_tokens(const Recipe& recipe, const models::ModelConfig& model) {
  const base::PerStream<int64_t> tokens = row_tokens(recipe, model.has_encoder());
  const int64_t most = std::numeric_limits<int32_t>::max() / std::ranges::max(tokens);
  if (recipe.per_device_train_batch_size > most)
    recipe.fail("per_device_train_batch_size",
                fmt::format("is {}, but a micro-batch has fewer than 2^31 tokens, at max_length={} "
                            "at most {} rows; use more gradient_accumulation_steps",
                            recipe.per_device_train_batch_size, recipe.max_length, most));
}

}  // namespace

DType compute_type(const Recipe& recipe, const program::Target& target) {
  if (asks_fp16(recipe)) return DType::f16;  // every backend supports fp16
  if (recipe.compute_dtype == ComputeDtype::fp32) return DType::f32;
  if (multiplies(DType::bf16, target)) return DType::bf16;
  if (recipe.compute_dtype == ComputeDtype::bf16)
    recipe.fail("compute_dtype", fmt::format("is bf16, but the {} backend has no bf16 matrix "
                                             "products on this machine (they need AVX-512 BF16 or "
                                             "AMX); use compute_dtype=fp32 or fp16",
                                             target.name()));
  return DType::f32;
}

// The name of the head's weight if it is stored in 4 bits; else empty.
std::string quantized_head(const Recipe& recipe, const models::ModelConfig& model) {
  if (!recipe.load_head_in_4bit) return "";
  if (model.tied_embeddings)
    recipe.fail("load_head_in_4bit",
                "is true, but the model's head is its embedding, which stays in 16 bits; leave it "
                "out");
  return models::head_weight(models::stack_of(model));
}

// The matrices of experts if they are stored in 4 bits. Files may hold them in several tensors,
// each of which is quantised by itself.
std::vector<std::string> quantized_experts(const Recipe& recipe, const models::ModelConfig& model) {
  std::vector<std::string> names;
  if (!recipe.load_experts_in_4bit) return names;
  for (const models::Weight& weight : models::weights_of(model)) {
    if (!weight.is_of_matrices()) continue;
    const int64_t elements =
        models::file_pieces(weight.name, weight.shape).front().shape.elements();
    const int64_t matrix = weight.shape[1] * weight.shape[2];
    if (elements % formats::kNf4BlockSize != 0 || matrix % formats::kNf4BlockSize != 0)
      recipe.fail("load_experts_in_4bit",
                  fmt::format("is true, but the matrices in '{}' are not whole blocks of {} "
                              "elements; leave it out",
                              weight.name, formats::kNf4BlockSize));
    names.push_back(weight.name);
  }
  if (names.empty())
    recipe.fail("load_experts_in_4bit", "is true, but the model has no experts; leave it out");
  return names;
}

std::optional<passes::QuantizeOptions> quantization(const Recipe& recipe,
                                                    const models::ModelConfig& model) {
  if (model.stored) {
    check_storage(recipe, *model.stored);
    return passes::QuantizeOptions{.nested = model.stored->double_quant,
                                   .kept = model.stored->kept,
                                   .head = model.stored->head};
  }
  if (!recipe.load_in_4bit && !formats::method_keys_of(recipe.method).always_in_4_bits) {
    check_unused(recipe);
    if (recipe.load_head_in_4bit)
      recipe.fail("load_head_in_4bit",
                  "is true, but linears are not stored in 4 bits; set load_in_4bit=true too (in "
                  "training, method=qlora), or leave it out");
    if (recipe.load_experts_in_4bit)
      recipe.fail("load_experts_in_4bit",
                  "is true, but linears are not stored in 4 bits; set load_in_4bit=true too (in "
                  "training, method=qlora), or leave it out");
    return std::nullopt;
  }
  return passes::QuantizeOptions{.nested = recipe.double_quant,
                                 .kept = models::matrices_in_16_bits(models::stack_of(model)),
                                 .head = quantized_head(recipe, model),
                                 .experts = quantized_experts(recipe, model)};
}

methods::BaseModel base_model(const models::ModelConfig& model,
                              const std::optional<passes::QuantizeOptions>& quantization) {
  const models::Stack stack = models::stack_of(model);
  return {.embedding = models::embedding_weight(stack),
          .head = models::head_weight(stack),
          .tied_head = stack.tied_head,
          .head_in_4_bits = quantization && !quantization->head.empty(),
          .has_encoder = model.has_encoder(),
          .layers = model.num_layers,
          .has_experts = model.num_experts > 0,
          .head_bias = stack.head_bias};
}

void refuse_open_length(const Recipe& recipe) {
  recipe.fail("max_length",
              "is auto, which the lengths of the data's documents decide, but there are none: give "
              "data that is there and that the model's tokenizer reads, or a number");
}

TrainingSpec training_spec(const Recipe& recipe, const models::ModelConfig& model,
                           const program::Target& target, const JobDocuments& documents) {
  if (recipe.max_length == 0) refuse_open_length(recipe);
  if (recipe.max_length > model.max_position)
    recipe.fail("max_length", fmt::format("is {}, but the model has {} positions",
                                          recipe.max_length, model.max_position));
  check_streams(recipe, model);
  check_tokens(recipe, model);
  refuse_unused_keys(recipe);
  // Throws for an unknown template, whatever the form of the data.
  text::check_chat_template(recipe.chat_template);
  TrainingSpec spec;
  spec.model = with_router_loss(recipe, model);
  spec.method = recipe.method;
  spec.quantization = quantization(recipe, model);
  spec.row_tokens = row_tokens(recipe, model.has_encoder());
  spec.lora = methods::lora_options(recipe, spec.row_tokens.decoder());
  spec.prompt = methods::prompt_options(recipe);
  if (spec.is_adapted())
    methods::method_of(spec.method)
        .refuse(spec.method_options(), base_model(model, spec.quantization));
  spec.compute = compute_type(recipe, target);
  spec.update = update_options(recipe, spec.compute, target);
  if (!spec.is_adapted()) spec.frozen = frozen_weights(recipe, model);
  // If recompute is open, it is none until it is chosen (choose_recompute.h).
  spec.recompute = recipe.recompute == formats::Recompute::automatic ? formats::Recompute::none
                                                                     : recipe.recompute;
  if (recipe.activation_offloading) check_offloading(recipe);
  spec.activation_offloading = recipe.activation_offloading;
  spec.streaming = streaming(recipe, target);
  spec.ranks = rank_grid(recipe);
  spec.rows = std::max<int64_t>(1, recipe.per_device_train_batch_size);  // auto was resolved before
  spec.objective = objective_options(recipe, spec);
  spec.row_segments = row_segments(recipe);
  const bool is_grouped = !model.has_encoder() && spec.row_tokens.decoder() > recipe.max_length;
  if (is_grouped) spec.longest_document = recipe.max_length;
  spec.accumulation = recipe.gradient_accumulation_steps;
  if (recipe.optim_in_backward) check_in_backward(recipe);
  spec.update_in_backward =
      recipe.optim_in_backward || (may_update_in_backward(recipe) && spec.streaming.optimizer);
  check_optimizer(recipe, spec, target);
  spec.deterministic = recipe.deterministic;
  spec.neftune_alpha = recipe.neftune_noise_alpha;
  spec.evaluate = recipe.evaluates();
  if (recipe.init == formats::Init::random) spec.init_seed = recipe.seed;
  spec.adapter_in_files = !recipe.adapter.empty();
  if (spec.adapter_in_files) spec.adapter_widths = adapter_widths(recipe.adapter);
  if (methods::objective_of(recipe.objective).makes_answers)
    shape_rollouts(recipe, documents, target, spec);
  else
    documents.shape_rows(spec);
  spec.generation = generation_shape(recipe, spec, documents);
  return spec;
}

}  // namespace snug::plan
