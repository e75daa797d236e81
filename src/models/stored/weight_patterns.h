// Patterns that select parts of a model by the names in its Hugging Face folder.
//
// A pattern names a tensor ("model.layers.3.mlp.up_proj.weight"), a module with everything in it
// ("model.layers.3.mlp"), or either of them by the last parts of its name ("mlp.up_proj",
// "layers.3"), as target_modules does. Only whole parts match: "layers.1" does not match layer 10,
// and "norm" matches only the final norm. In a pattern, * stands for any characters, dots included;
// ? for one character; [0-4a] for one character of a set, and [!0-4] for one outside it:
// "layers.[0-9]" and "layers.1[0-5]" are the first 16 layers.
//
// Tied embeddings are one tensor, which "lm_head" names as well as "model.embed_tokens".
// Projections that a family stores in one tensor have only that tensor's name ("qkv_proj").
#pragma once

#include <string>
#include <vector>

#include "models/config/config.h"

namespace snug::models {

// The names of the weights that the pattern selects, in the order of weights_of.
std::vector<std::string> weights_matching(const ModelConfig& config, const std::string& pattern);

// Suggestions for a pattern that selects nothing: the most similar name, if there is one, and the
// names that exist.
std::string known_names(const ModelConfig& config, const std::string& pattern);

}  // namespace snug::models
