// The config.json of a model that combines a language model with encoders of images or sound. Snug
// trains the text part of some of them where it lies, and of others in a folder of its own
// (docs/multimodal.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "models/config/config.h"

namespace snug::models {

// The text model of a model whose text part Snug trains where it lies, as a config of its own;
// nothing for any other file.
std::optional<ModelConfig> parse_whole_model(const base::JsonObject& json);

// The config of the text part as the family reads it that the part belongs to; nothing for a
// text-only model and for a part of no family.
std::optional<nlohmann::json> text_config(const nlohmann::json& whole);

// Says what the file describes and how to extract its text part; empty for a text-only model.
std::string describe_multimodal(const base::JsonObject& json);

// The config of the text part, which is in config.json; nullptr for a text-only model.
const nlohmann::json* text_part(const nlohmann::json& config);
nlohmann::json* text_part(nlohmann::json& config);

}  // namespace snug::models
