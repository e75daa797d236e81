// Detects the config.json of a model that combines a language model with encoders of images or
// sound, and explains what to do: Snug trains only the text part, in a folder of its own
// (docs/multimodal.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/json.h"

namespace snug::models {

// Says what the file describes and how to extract its text part; empty for a text-only model.
std::string describe_multimodal(const base::JsonObject& json);

// The config of the text part, which is in config.json; nullptr for a text-only model.
const nlohmann::json* text_part(const nlohmann::json& config);
nlohmann::json* text_part(nlohmann::json& config);

}  // namespace snug::models
