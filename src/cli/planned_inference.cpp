#include "cli/planned_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "models/config/config.h"
#include "plan/spec/adapter_tables.h"
#include "runtime/execution/rehearsal.h"

namespace snug::cli {
namespace {

models::ModelConfig model_of(const formats::Recipe& recipe) {
  models::ModelConfig model = models::find_model(recipe.model).config;
  return recipe.adapter.empty() ? model : plan::with_adapter_tables(model, recipe.adapter);
}

int64_t length_of(const formats::Recipe& recipe, const models::ModelConfig& model) {
  if (recipe.max_length == 0)
    recipe.fail("max_length", "is auto, which is about data; give the tokens of a sequence");
  if (!recipe.is_given("max_length")) return std::min(recipe.max_length, model.max_position);
  if (recipe.max_length > model.max_position)
    recipe.fail("max_length", fmt::format("is {}, but the model has {} positions",
                                          recipe.max_length, model.max_position));
  return recipe.max_length;
}

int64_t in_chunks(int64_t tokens) {
  constexpr int64_t kStep = plan::kMinPrefillTokens;
  return std::min((tokens + kStep - 1) / kStep * kStep, plan::kPrefillTokens);
}

// The shape for prompts that are as long as a sequence may be.
plan::InferenceShape shape_of(const formats::Recipe& recipe, const models::ModelConfig& model) {
  const int64_t length = length_of(recipe, model);
  plan::InferenceShape shape;
  shape.sequences = std::max<int64_t>(recipe.per_device_train_batch_size, 1);
  shape.capacity = length;
  shape.prefill_tokens = in_chunks(shape.sequences * length);
  if (!model.has_encoder()) return shape;
  const int64_t answer = recipe.max_target_length > 0 ? recipe.max_target_length : length;
  shape.capacity = {answer + (model.repeats_prompt ? length : 0), length};
  shape.encoder_tokens = std::max(length, shape.prefill_tokens);
  if (!model.repeats_prompt) shape.prefill_tokens = in_chunks(shape.sequences);
  return shape;
}

void require_one_device(const formats::Recipe& recipe) {
  if (recipe.rank_count() > 1)
    recipe.fail(recipe.devices_per_node() > 1 ? "devices" : "nodes",
                "asks for several devices, and inference runs on one; leave it out");
}

// Adds the program of the asked size to those that are planned. Throws UserError for a size with
// which no run has a program.
void add_sized_program(plan::InferenceShape& shape, const program::ProgramKey& asked) {
  plan::InferenceShape sized = shape;
  plan::add_small_sizes(sized);
  const bool is_decode = asked.name == program::ProgramName::decode;
  const std::vector<int32_t> sizes = is_decode ? small_decodes(sized) : small_prefills(sized);
  const std::string_view name = base::word_of(asked.name);
  if (std::ranges::find(sizes, asked.size) == sizes.end()) {
    std::string smaller;
    for (const int32_t size : sizes) smaller += fmt::format("{}.{}, ", name, size);
    base::throw_user_error(
        "'program' is '{0}.{1}', which this job of inference does not have; it has {2}{0} (the "
        "largest, for {3} {4})",
        name, asked.size, smaller, is_decode ? shape.sequences : shape.prefill_tokens,
        is_decode ? "side by side" : "tokens of prompts");
  }
  (is_decode ? shape.decode_sizes : shape.prefill_sizes) = {asked.size};
}

// The key of the sequences that run at one time; how many where it says nothing.
constexpr const char* kSequencesKey = "per_device_train_batch_size";
constexpr int64_t kServedSequences = 16;

}  // namespace

plan::PlannedInference planned_inference(const formats::Recipe& recipe, program::Target& target,
                                         const std::optional<program::ProgramKey>& program) {
  require_one_device(recipe);
  const models::ModelConfig model = model_of(recipe);
  plan::InferenceShape shape = shape_of(recipe, model);
  if (program && program->size > 0) add_sized_program(shape, *program);
  return plan::assemble_inference(
      {recipe, model, target, shape, kSequencesKey},
      [&](const plan::Job& job) { return runtime::rehearse(job, target); });
}

plan::PlannedServing planned_serving(const formats::Recipe& recipe, program::Target& target) {
  require_one_device(recipe);
  const models::ModelConfig model = model_of(recipe);
  plan::InferenceShape shape = shape_of(recipe, model);
  if (!recipe.is_given(kSequencesKey) || recipe.per_device_train_batch_size == 0)
    shape.sequences = kServedSequences;
  if (!model.has_encoder()) shape.prefill_tokens = plan::kPrefillTokens;
  plan::add_served_sizes(shape);
  return plan::assemble_serving(
      {recipe, model, target, shape, kSequencesKey},
      [&](const plan::Job& job) { return runtime::rehearse(job, target); });
}

}  // namespace snug::cli
