// Words of a recipe, `key=value`, and more of them.
#pragma once

#include <string>
#include <vector>

namespace snug::plan {

using Words = std::vector<std::string>;

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace snug::plan
