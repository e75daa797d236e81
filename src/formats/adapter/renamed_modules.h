// Modules that transformers has renamed. A file has the names of the version with which it was
// written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// The names under which files may hold a tensor: its own, followed by the one with its module's
// other name. "embed_out.weight" of GPT-NeoX is "lm_head.weight" since transformers 5, also in
// PEFT's adapters, which name tensors by modules.
std::vector<std::string> names_of(std::string_view tensor);

// PEFT's name of the parameter that holds a matrix of all experts of a layer, by the name that the
// weight has here (models/stored/expert_names.h): transformers has one parameter for gate and up
// and one for down, whatever files hold. Empty for other weights.
std::string expert_parameter(std::string_view weight);
// The parameter that an adapted module of experts wraps ("model.layers.0.mlp.experts.base_layer"),
// of those that an adapter's target_parameters name; the module itself where it is none of experts.
std::string wrapped_parameter(const std::string& module,
                              const std::vector<std::string>& target_parameters);

}  // namespace snug::formats
