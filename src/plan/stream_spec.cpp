#include "plan/stream_spec.h"

#include <fmt/format.h>

#include <string>

#include "program/builder.h"

namespace snug::plan {
namespace {

using formats::DataFormat;
using formats::Recipe;

// Those of which a prompt and one answer are parts.
bool has_two_parts(DataFormat format) {
  return format == DataFormat::automatic || format == DataFormat::alpaca ||
         format == DataFormat::prompt_completion || format == DataFormat::tokens;
}

void check_data(const Recipe& recipe) {
  if (recipe.objective != formats::Objective::next_token)
    recipe.fail("objective",
                fmt::format("is {}, which is not built for encoder-decoders; use next_token",
                            base::word_of(recipe.objective)));
  if (!has_two_parts(recipe.data_format))
    recipe.fail("data_format",
                fmt::format("is {}, which is not built for encoder-decoders; give records with "
                            "prompt and completion, or instruction and output, or input_ids and "
                            "labels",
                            base::word_of(recipe.data_format)));
  if (recipe.train_on_prompt)
    recipe.fail("train_on_prompt",
                "is true, but the encoder reads the prompt and predicts nothing; leave it out");
}

// Attention with a bias by relative position, of so many queries as keys.
bool runs_relative_bias(const program::Target& target) {
  constexpr int64_t kTokens = 64;
  constexpr int64_t kHeads = 2;
  constexpr int64_t kHeadDim = 16;
  constexpr auto kType = program::DType::f32;
  program::Builder builder("probe");
  const auto tensor = [&](const char* name, const program::Shape& shape, program::DType type) {
    return builder.activation(name, shape, type);
  };
  const program::Shape rows{kTokens, kHeads * kHeadDim};
  const auto q = tensor("q", rows, kType);
  const auto k = tensor("k", rows, kType);
  const auto v = tensor("v", rows, kType);
  const auto bounds = tensor("bounds", {1, 2}, program::DType::i32);
  const auto bias = tensor("bias", {32, kHeads}, kType);
  const auto o = tensor("o", rows, kType);
  const auto lse = tensor("lse", {kHeads, kTokens}, kType);
  builder.emit(program::Attention{.heads = kHeads,
                                  .kv_heads = kHeads,
                                  .head_dim = kHeadDim,
                                  .relative_bias = true,
                                  .max_distance = 128},
               {q, k, v, bounds, bounds, bias}, {o, lse});
  const program::Program probe = builder.take();
  return target.runs({probe, probe.operations.front()});
}

}  // namespace

void check_attention(const Recipe& recipe, const models::ModelConfig& model,
                     const program::Target& target) {
  if (model.positions != models::Positions::relative || runs_relative_bias(target)) return;
  recipe.fail("model",
              fmt::format("is a {}, whose attention has a bias by relative position, which the {} "
                          "backend does not compute yet; use backend=cpu",
                          model.model_type, target.name()));
}

void check_streams(const Recipe& recipe, const models::ModelConfig& model) {
  if (!model.has_encoder()) {
    if (recipe.max_target_length > 0)
      recipe.fail("max_target_length",
                  "is for models with an encoder, and this one reads prompt and answer in one row; "
                  "leave it out");
    return;
  }
  check_data(recipe);
  if (recipe.max_length == 0)
    recipe.fail("max_length", "is auto, which is not built for encoder-decoders; give a number");
  if (recipe.fp16 || recipe.compute_dtype == formats::ComputeDtype::fp16)
    recipe.fail(recipe.fp16 ? "fp16" : "compute_dtype",
                "asks for fp16, which is not built for encoder-decoders: T5's activations exceed "
                "its range; use compute_dtype=bf16 or fp32");
}

}  // namespace snug::plan
