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

}  // namespace snug::formats
