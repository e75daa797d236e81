// The shape of the model in a GGUF file: its metadata, and the tensors that it has and has not, as
// the ModelConfig of a family, and as config.json of a Hugging Face folder. What the file does not
// say (dropout, how weights were initialized, the loss of routers) has the family's defaults.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "formats/gguf/gguf_file.h"
#include "models/config/config.h"

namespace snug::models {

// Throws UserError for a file that holds no model (an adapter, a vocabulary, an encoder of
// images), for an architecture that no family has, and for a setting that the family does not.
ModelConfig imported_config(const formats::GgufFile& file);

// The config.json, with the ids of special tokens and without the type of the weights.
nlohmann::json imported_config_json(const ModelConfig& config, const formats::GgufFile& file);

}  // namespace snug::models
