// An answer and what it is held against.
#pragma once

#include <string_view>

namespace snug::scores {

struct ScoredAnswer {
  std::string_view answer;
  std::string_view reference;
};

}  // namespace snug::scores
