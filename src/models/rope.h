// Rotary embeddings of a model: how config.json says them, and the frequencies that follow.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/json.h"
#include "models/config.h"

namespace snug::models {

// Reads rope_theta with rope_scaling (transformers 4) or rope_parameters (transformers 5). Throws
// UserError for a form of scaling that is not built, naming those that are: default, linear,
// llama3.
RopeConfig parse_rope(const base::JsonObject& json);

// Writes transformers 4's keys, which 5 reads too.
void describe_rope(const RopeConfig& rope, nlohmann::json& json);

// Inverse frequencies, head_dim / 2 of them, with the model's scaling.
std::vector<float> inverse_frequencies(const ModelConfig& config);

}  // namespace snug::models
