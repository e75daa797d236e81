// Detects the config.json of a model that combines a language model with encoders of images or
// sound, and explains what to do: Snug trains only the text part, in a folder of its own
// (docs/multimodal.md).
#pragma once

#include <string>

#include "base/json.h"

namespace snug::models {

// Says what the file describes and how to extract its text part; empty for a text-only model.
std::string describe_multimodal(const base::JsonObject& json);

}  // namespace snug::models
