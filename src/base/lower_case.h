// Lower case for comparing words: ASCII letters are lowered, other bytes are kept.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace snug::base {

inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

}  // namespace snug::base
