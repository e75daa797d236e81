#include "plan/spec/stream_spec.h"

#include <fmt/format.h>

#include <string>

namespace snug::plan {
namespace {

using formats::DataFormat;
using formats::Recipe;

// Whether the records of a format have a prompt and one answer.
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
    recipe.fail(
        "data_format",
        fmt::format(
            "is {}, which is not built for encoder-decoders; give records with "
            "prompt and completion, input and target, instruction and output, or input_ids and "
            "labels",
            base::word_of(recipe.data_format)));
  if (recipe.train_on_prompt)
    recipe.fail("train_on_prompt",
                "is true, but the encoder reads the prompt and predicts nothing; leave it out");
}

}  // namespace

void check_compute_type(const Recipe& recipe, const models::ModelConfig& model) {
  if (!model.has_encoder() || recipe.compute_dtype != formats::ComputeDtype::fp16) return;
  recipe.fail(recipe.is_given("compute_dtype") ? "compute_dtype" : "fp16",
              "asks for fp16, which is not built for encoder-decoders: T5's activations exceed its "
              "range; use compute_dtype=bf16 or fp32");
}

void check_streams(const Recipe& recipe, const models::ModelConfig& model) {
  if (!model.has_encoder()) {
    if (recipe.max_target_length > 0)
      recipe.fail(
          "max_target_length",
          "is for models with an encoder, and this one reads prompt and answer in one row, of "
          "max_length; leave it out");
    return;
  }
  check_data(recipe);
  if (recipe.max_length == 0 && recipe.max_target_length > 0)
    recipe.fail("max_target_length",
                "is given next to max_length=auto, which chooses both lengths; leave it out");
  if (recipe.max_target_length > model.max_position)
    recipe.fail("max_target_length", fmt::format("is {}, but the model has {} positions",
                                                 recipe.max_target_length, model.max_position));
  check_compute_type(recipe, model);
}

}  // namespace snug::plan
