#include "formats/adapter/prompt_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Keys that are read, or whose value does not affect what a trained adapter computes.
constexpr std::array<std::string_view, 11> kPromptKeys{
    "peft_type",     "adapter_len",    "adapter_layers",
    "adapter_gates", "target_modules", "base_model_name_or_path",
    "task_type",     "inference_mode", "auto_mapping",
    "revision",      "peft_version"};

bool changes_nothing(const json& value) {
  return value.is_null() || value == json(false) || (value.is_structured() && value.empty()) ||
         (value.is_number() && value == 0);
}

void refuse_unknown_keys(const base::JsonObject& config) {
  for (const auto& [key, value] : config.value().items())
    if (std::ranges::find(kPromptKeys, key) == kPromptKeys.end() && !changes_nothing(value))
      config.fail(key, fmt::format("is {}, which Snug does not know of prompts", value.dump()));
  // PEFT's form for GPT-2 omits the output projection, so it is refused.
  const std::string targets = config.text_or("target_modules", "self_attn");
  if (config.text("peft_type") == kPeftPromptType && targets != "self_attn")
    config.fail("target_modules",
                fmt::format("is '{}', but Snug reads PEFT's prompts of llama and mistral; expected "
                            "'self_attn'",
                            targets));
}

AdapterGates read_gates(const base::JsonObject& config) {
  const std::string word = config.text("adapter_gates");
  const auto gates = base::from_word<AdapterGates>(word);
  if (!gates || *gates == AdapterGates::automatic)
    config.fail("adapter_gates", fmt::format("is '{}'; expected head or layer", word));
  return *gates;
}

}  // namespace

PromptConfig read_prompt_config(const fs::path& folder) {
  const fs::path path = folder / "adapter_config.json";
  const json document = base::read_json_file(path);
  const base::JsonObject config(document, path.string());
  refuse_unknown_keys(config);
  PromptConfig prompt;
  prompt.is_peft = config.text("peft_type") == kPeftPromptType;
  prompt.adjusts_linears = config.text("peft_type") == kPromptV2Type;
  prompt.tokens = config.integer("adapter_len");
  prompt.layers = config.integer("adapter_layers");
  prompt.gates = prompt.is_peft ? AdapterGates::layer : read_gates(config);
  prompt.base_model = config.text_or("base_model_name_or_path", "");
  for (const auto& [key, value] :
       {std::pair{"adapter_len", prompt.tokens}, {"adapter_layers", prompt.layers}})
    if (value < 1) config.fail(key, fmt::format("is {}; expected 1 or more", value));
  return prompt;
}

void write_prompt_config(const fs::path& folder, const PromptConfig& config) {
  SNUG_CHECK(config.tokens >= 1 && config.layers >= 1, "prompts of {} vectors in {} layers",
             config.tokens, config.layers);
  json document = {
      {"adapter_layers", config.layers},
      {"adapter_len", config.tokens},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path",
       config.base_model.empty() ? json(nullptr) : json(config.base_model)},
      {"inference_mode", true},
      {"peft_type", config.is_peft           ? kPeftPromptType
                    : config.adjusts_linears ? kPromptV2Type
                                             : kPromptType},
      {"revision", nullptr},
      {"task_type", "CAUSAL_LM"},
  };
  if (config.is_peft)
    document["target_modules"] = "self_attn";
  else
    document["adapter_gates"] = base::word_of(config.gates);
  base::write_file_atomically(folder / "adapter_config.json", document.dump(2) + "\n");
}

}  // namespace snug::formats
