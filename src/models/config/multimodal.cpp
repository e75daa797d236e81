#include "models/config/multimodal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "models/families/families.h"

namespace snug::models {
namespace {

// The keys under which different classes put the config of the text part.
constexpr std::array<std::string_view, 4> kTextParts = {"text_config", "llm_config",
                                                        "language_config", "thinker_config"};

// Models whose text part is trained where it lies, and the module that holds it in transformers'
// class.
struct WholeModel {
  std::string_view model_type;
  std::string_view text_module;
  bool tied;  // where config.json does not say it
};
constexpr std::array kWholeModels{WholeModel{"gemma3", "model.language_model", true},
                                  WholeModel{"gemma4", "model.language_model", true},
                                  WholeModel{"gemma4_unified", "model.language_model", true},
                                  WholeModel{"mistral3", "model.language_model", true},
                                  WholeModel{"qwen3_5", "model.language_model", false}};

bool is_object(const nlohmann::json& json, std::string_view key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_object();
}

// The keys of the other parts: "vision_config, audio_config".
std::string other_parts(const nlohmann::json& json) {
  std::string parts;
  for (const std::string_view key : {"vision_config", "visual", "audio_config", "speech_config"})
    if (is_object(json, key)) parts += fmt::format("{}{}", parts.empty() ? "" : ", ", key);
  return parts;
}

std::string type_of(const nlohmann::json& part) {
  const auto type = part.find("model_type");
  return type != part.end() && type->is_string() ? type->get<std::string>() : "";
}

std::string describe_text_part(std::string_view key, const std::string& type) {
  if (type.empty())
    return fmt::format("its text part, whose config is {}, is of no model_type", key);
  if (find_family(type) == nullptr)
    return fmt::format("its text part, \"{}\" in {}, is not built either; snug has {}", type, key,
                       family_names());
  return fmt::format(
      "its text part, \"{}\" in {}, is: take it out into a folder of its own, which docs/"
      "multimodal.md shows how to do with transformers, and give that folder as model",
      type, key);
}

}  // namespace

std::optional<ModelConfig> parse_whole_model(const base::JsonObject& json) {
  const std::string type = json.text("model_type");
  const auto* const whole = std::ranges::find(kWholeModels, type, &WholeModel::model_type);
  if (whole == kWholeModels.end() || !json.has("text_config")) return std::nullopt;
  const base::JsonObject text = json.object("text_config");
  const Family* family = find_family(text.text("model_type"));
  if (family == nullptr) return std::nullopt;
  ModelConfig config = family->parse(text);
  config.text_module = whole->text_module;
  // The key of the whole model decides; a head in the files that differs from the embedding is used
  // all the same.
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", whole->tied);
  return config;
}

const nlohmann::json* text_part(const nlohmann::json& config) {
  for (const std::string_view key : kTextParts) {
    if (!is_object(config, key)) continue;
    const nlohmann::json& part = config[std::string(key)];
    // The text part of Qwen's omni models is itself a model of several parts.
    return is_object(part, "text_config") ? &part["text_config"] : &part;
  }
  return nullptr;
}

nlohmann::json* text_part(nlohmann::json& config) {
  return const_cast<nlohmann::json*>(text_part(std::as_const(config)));
}

std::string describe_multimodal(const base::JsonObject& json) {
  const nlohmann::json& config = json.value();
  const std::string others = other_parts(config);
  for (const std::string_view key : kTextParts) {
    if (!is_object(config, key)) continue;
    const nlohmann::json& part = config[std::string(key)];
    // The text part of Qwen's omni models is itself a model of several parts.
    const bool is_nested = is_object(part, "text_config");
    const std::string name = is_nested ? fmt::format("{}.text_config", key) : std::string(key);
    return fmt::format("a multimodal model{}, which is not built; {}",
                       others.empty() ? "" : fmt::format(" (with {})", others),
                       describe_text_part(name, type_of(is_nested ? part["text_config"] : part)));
  }
  if (others.empty()) return "";
  return fmt::format(
      "a multimodal model (with {}), which is not built; its text part could be taken out into a "
      "folder of its own (docs/multimodal.md) where that is one of {}",
      others, family_names());
}

}  // namespace snug::models
