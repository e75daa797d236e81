// config.json of models that hold a language model and encoders of images or sound: what a message
// says of them, since Snug trains the text part alone, in a folder of its own (docs/multimodal.md).
#pragma once

#include <string>

#include "base/json.h"

namespace snug::models {

// What the file describes and how its text part is taken out; empty for a model of text alone.
std::string describe_multimodal(const base::JsonObject& json);

}  // namespace snug::models
