// The table rows of the methods with prompts: how their adapters appear in files, recipes and
// errors.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/error.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/folder/safetensors_file.h"
#include "formats/recipe/recipe.h"
#include "methods/method.h"
#include "models/forward/prompt_names.h"
#include "program/kinds/transfer/storage.h"

namespace snug::methods {
namespace {

namespace fs = std::filesystem;
using formats::AdapterConfig;
using formats::PromptConfig;
using formats::Recipe;
using program::Tensor;

std::vector<int64_t> stored_dims(const Tensor& tensor) {
  const program::Shape shape = models::stored_prompt_shape(tensor.name, whole_shape(tensor));
  std::vector<int64_t> dims;
  dims.reserve(static_cast<size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

int64_t layers_with_prompts(std::span<const Tensor> tensors) {
  return std::ranges::count_if(tensors,
                               [](const Tensor& each) { return models::is_prompt(each.name); });
}

std::string words_of_prompts(const PromptOptions& options) {
  return fmt::format("adapter_len {}, adapter_layers {}, adapter_gates {}", options.tokens,
                     options.layers, base::word_of(options.gates));
}

std::string basis_of_prompts(const MethodOptions& options) {
  return fmt::format("as {} and the base model say", words_of_prompts(options.prompt));
}

void check_prompt_config(const fs::path& folder, const MethodOptions& options,
                         std::span<const Tensor> tensors) {
  const auto config = std::get<PromptConfig>(formats::read_adapter_config(folder));
  const PromptOptions saved{
      .tokens = config.tokens, .layers = config.layers, .gates = config.gates};
  PromptOptions planned = options.prompt;
  planned.layers = layers_with_prompts(tensors);
  if (words_of_prompts(saved) == words_of_prompts(planned)) return;
  base::throw_user_error(
      "{}: the adapter was trained with {}, and this job has {}; give the adapter's values, for a "
      "model of as many layers",
      (folder / "adapter_config.json").string(), words_of_prompts(saved),
      words_of_prompts(planned));
}

// Checks that the folder has the same tensors with the same shapes.
void check_prompts(const fs::path& folder, const MethodOptions& options,
                   std::span<const Tensor> tensors) {
  check_prompt_config(folder, options, tensors);
  const formats::SafetensorsFile file = formats::open_adapter_file(folder);
  std::unordered_set<std::string> planned;
  for (const Tensor& tensor : tensors) {
    const std::string& name = *planned.insert(formats::adapter_key(tensor.name)).first;
    const formats::TensorInfo* stored = file.find(name);
    if (stored == nullptr)
      base::throw_user_error(
          "{}: the adapter has no '{}', which this job trains; is it an adapter of this model?",
          file.path().string(), name);
    if (stored->shape != stored_dims(tensor))
      base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, {}", file.path().string(),
                             name, formats::shape_text(stored->shape),
                             formats::shape_text(stored_dims(tensor)), basis_of_prompts(options));
  }
  for (const formats::TensorInfo& stored : file.tensors())
    if (!planned.contains(stored.name))
      base::throw_user_error(
          "{}: the adapter has '{}', which this job does not train; is it an adapter of this "
          "model?",
          file.path().string(), stored.name);
}

void refuse_prompts(const MethodOptions& options, const BaseModel& base) {
  if (base.has_encoder)
    base::throw_user_error(
        "method: is {}, which is not built for encoder-decoders; use method=lora",
        base::word_of(options.prompt.adjusts_linears ? formats::Method::adapter_v2
                                                     : formats::Method::adapter));
  if (options.prompt.adjusts_linears && base.has_experts)
    base::throw_user_error(
        "method: is adapter_v2, which gives every linear a bias and a scale, and the model is a "
        "mixture of experts, whose linears have none yet; use method=adapter, or lora");
  if (options.prompt.adjusts_linears && base.head_bias)
    base::throw_user_error(
        "method: is adapter_v2, which gives the head a bias, and the model's head has one of its "
        "own, "
        "which is not built yet; use method=adapter, or lora");
  if (options.prompt.layers > base.layers)
    base::throw_user_error(
        "adapter_layers: is {}, but the model has {} layers; give at most so many, or 0 for all "
        "but the first two",
        options.prompt.layers, base.layers);
}

// The initial values are those of PEFT and Lit-GPT: vectors are normal, gates and biases zero,
// scales one. The only other trainable tensors are norms, which begin with the model's values.
std::optional<program::Fill> initial_prompts(const Tensor& tensor, const AdapterStart& start) {
  using program::Fill;
  using program::FillForm;
  if (models::is_prompt(tensor.name)) return Fill{FillForm::normal, 1.0F, start.seed};
  if (models::is_adjusting_scale(tensor.name)) return Fill{FillForm::constant, 1.0F};
  if (models::is_gate(tensor.name) || models::is_adjusting_bias(tensor.name))
    return Fill{FillForm::constant};
  return std::nullopt;
}

template <bool adjusts_linears>
bool reads_prompts(const AdapterConfig& config) {
  const auto* prompts = std::get_if<PromptConfig>(&config);
  return prompts != nullptr && prompts->adjusts_linears == adjusts_linears;
}

void settle_prompts(Recipe& recipe, const AdapterConfig& config) {
  const auto& adapter = std::get<PromptConfig>(config);
  if (!recipe.is_given("adapter_len")) recipe.adapter_len = adapter.tokens;
  if (!recipe.is_given("adapter_layers")) recipe.adapter_layers = adapter.layers;
  if (!recipe.is_given("adapter_gates")) recipe.adapter_gates = adapter.gates;
}

MethodOptions options_of_prompts(const AdapterConfig& config) {
  const auto& adapter = std::get<PromptConfig>(config);
  return {.prompt = {.tokens = adapter.tokens,
                     .layers = adapter.layers,
                     .gates = adapter.gates,
                     .adjusts_linears = adapter.adjusts_linears}};
}

template <bool adjusts_linears>
AdapterConfig config_of_prompts(const SavedAdapter& saved) {
  const formats::AdapterGates gates = saved.recipe.adapter_gates;
  const bool has_peft_form =
      saved.peft_has_prompts && gates == formats::AdapterGates::layer && !adjusts_linears;
  return PromptConfig{.tokens = saved.recipe.adapter_len,
                      .layers = layers_with_prompts(saved.tensors),
                      .gates = gates,
                      .is_peft = has_peft_form,
                      .adjusts_linears = adjusts_linears,
                      .base_model = saved.recipe.model};
}

void extend(models::Stack& stack, const MethodOptions& options) {
  add_prompts(stack, options.prompt);
}

template <bool adjusts_linears>
constexpr Method row_of_prompts(MethodKind kind) {
  return {.kind = kind,
          .trains_head = adjusts_linears,
          .extend = extend,
          .refuse = refuse_prompts,
          .initial_values = initial_prompts,
          .reads = reads_prompts<adjusts_linears>,
          .settle = settle_prompts,
          .options = options_of_prompts,
          .config = config_of_prompts<adjusts_linears>,
          .check = check_prompts,
          .basis = basis_of_prompts};
}

}  // namespace

// How the base model is stored is not part of the adapter.
constinit const Method kAdapter = row_of_prompts<false>(MethodKind::adapter);
constinit const Method kAdapterV2 = row_of_prompts<true>(MethodKind::adapter_v2);

}  // namespace snug::methods
