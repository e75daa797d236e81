// Patterns that name parts of a model, by the names of its Hugging Face folder.
//
// A pattern names a tensor ("model.layers.3.mlp.up_proj.weight"), a module with all that is in it
// ("model.layers.3.mlp"), or either by the last parts of its name ("mlp.up_proj", "layers.3"), as
// target_modules does. Only whole parts match: "layers.1" is not layer 10, and "norm" is the final
// norm alone. In a pattern * stands for any characters, dots too, ? for one, and [0-4a] or [!0-4]
// for one of a set or outside it: "layers.[0-9]" and "layers.1[0-5]" are the first 16 layers.
//
// Tied embeddings are one tensor, which "lm_head" names as well as "model.embed_tokens".
// Projections that a family stores in one tensor have its name alone ("qkv_proj").
#pragma once

#include <string>
#include <vector>

#include "models/config/config.h"

namespace snug::models {

// The names of the weights that the pattern selects, in the order of weights_of.
std::vector<std::string> weights_matching(const ModelConfig& config, const std::string& pattern);

// What to write in place of a pattern that selects nothing: the nearest name, where one is near,
// and the names that there are.
std::string known_names(const ModelConfig& config, const std::string& pattern);

}  // namespace snug::models
