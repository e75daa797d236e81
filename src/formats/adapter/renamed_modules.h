// Modules that transformers has renamed: a file has the name that held when, or with which version,
// it was written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// The names under which files may hold a tensor: its own, then the one that its module's other name
// makes. "embed_out.weight" of GPT-NeoX is "lm_head.weight" in transformers since 5, and so in
// adapters of PEFT, which names tensors by modules.
std::vector<std::string> names_of(std::string_view tensor);

}  // namespace snug::formats
