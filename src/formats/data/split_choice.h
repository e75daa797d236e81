// What an entry's `split` asks for, in the words of the `datasets` library: "train", "train+test",
// "all", "train[:1000]".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace snug::formats {

struct SplitChoice {
  std::vector<std::string> names;  // empty: none is named
  int64_t limit = 0;               // of the records, from the first; 0: all

  static constexpr const char* kAll = "all";  // the name that stands for all splits
};

// Throws UserError for a part of a split that is not its beginning, or is a percentage, with what
// to give instead.
SplitChoice read_split_choice(const std::string& split);

}  // namespace snug::formats
