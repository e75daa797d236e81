#include "models/config/multimodal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "models/families/families.h"
#include "models/families/missing_families.h"

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
  // A tie that the config of the text part asks for counts, too.
  bool tied_by_text = false;
};
constexpr std::array kWholeModels{WholeModel{"gemma3", "model.language_model", true},
                                  WholeModel{"gemma4", "model.language_model", true},
                                  WholeModel{"gemma4_unified", "model.language_model", true},
                                  WholeModel{"mistral3", "model.language_model", true},
                                  WholeModel{"qwen2_5_vl", "model.language_model", false, true},
                                  WholeModel{"qwen2_vl", "model.language_model", false, true},
                                  WholeModel{"qwen3_5", "model.language_model", false},
                                  WholeModel{"qwen3_5_moe", "model.language_model", false},
                                  WholeModel{"qwen3_vl", "model.language_model", false}};

// Text parts that are, for text, the network of a family under another name: where a token has one
// position, a rotation by three kinds of positions (mrope) is one by that position.
struct RenamedPart {
  std::string_view model_type;
  // The type of whole models whose config.json may hold the keys of the text part next to its own.
  std::string_view flat_type;
  std::string_view family;
  std::string_view defaults;  // what absent keys mean to transformers' class, as JSON
};
constexpr std::string_view kQwen2Defaults =
    R"({"vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
        "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
        "max_window_layers": 80})";
constexpr std::string_view kQwen3Defaults =
    R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "max_position_embeddings": 128000, "rope_theta": 500000.0})";
constexpr std::array kRenamedParts{
    RenamedPart{"qwen2_5_vl_text", "qwen2_5_vl", "qwen2", kQwen2Defaults},
    RenamedPart{"qwen2_vl_text", "qwen2_vl", "qwen2", kQwen2Defaults},
    RenamedPart{"qwen3_vl_text", "", "qwen3", kQwen3Defaults}};

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

// The config of a renamed part as its family reads it.
nlohmann::json renamed_config(const nlohmann::json& part, const RenamedPart& renamed) {
  nlohmann::json config = base::parse_json(renamed.defaults, std::string(renamed.model_type));
  config.update(part);
  config["model_type"] = renamed.family;
  for (const char* rope : {"rope_scaling", "rope_parameters"})
    for (const char* type : {"rope_type", "type"})
      if (is_object(config, rope) && config[rope].value(type, "") == "mrope")
        config[rope][type] = "default";
  return config;
}

std::string describe_text_part(std::string_view key, const std::string& type) {
  if (type.empty())
    return fmt::format("its text part, whose config is {}, is of no model_type", key);
  if (const MissingFamily* missing = find_missing_family(type))
    return fmt::format("its text part is \"{}\" in {}, {}", type, key, say_missing(*missing));
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
  const auto text = text_config(json.value());
  if (whole == kWholeModels.end() || !text) return std::nullopt;
  const bool is_part = text_part(json.value()) != nullptr;
  ModelConfig config =
      find_family(type_of(*text))
          ->parse(base::JsonObject(*text, json.file(), is_part ? "text_config" : ""));
  config.text_module = whole->text_module;
  // The key of the whole model decides; a head in the files that differs from the embedding is used
  // all the same.
  const bool tied_by_text = whole->tied_by_text && config.tied_embeddings;
  config.tied_embeddings = tied_by_text || json.boolean_or("tie_word_embeddings", whole->tied);
  return config;
}

std::optional<nlohmann::json> text_config(const nlohmann::json& whole) {
  const nlohmann::json* part = text_part(whole);
  const auto* const renamed =
      part != nullptr ? std::ranges::find(kRenamedParts, type_of(*part), &RenamedPart::model_type)
                      : std::ranges::find(kRenamedParts, type_of(whole), &RenamedPart::flat_type);
  if (renamed != kRenamedParts.end())
    return renamed_config(part != nullptr ? *part : whole, *renamed);
  if (part == nullptr || find_family(type_of(*part)) == nullptr) return std::nullopt;
  return *part;
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
