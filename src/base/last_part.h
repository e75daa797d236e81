// The last component of a module's name.
#pragma once

#include <string>
#include <string_view>

namespace snug::base {

// The part after the last dot of a name, or the whole name where there is no dot: "q_proj" for
// "model.layers.0.self_attn.q_proj".
inline std::string last_part(std::string_view name) {
  return std::string(name.substr(name.rfind('.') + 1));
}

}  // namespace snug::base
