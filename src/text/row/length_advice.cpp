#include "text/row/length_advice.h"

#include <fmt/format.h>

namespace snug::text {

std::string length_advice(const NeededLength& needed, int64_t positions, const char* key) {
  if (needed.whole <= positions)
    return fmt::format("set {}={}, which holds all of it", key, needed.whole);
  if (needed.first_target < positions)
    return fmt::format(
        "all of it takes {} tokens, and the model has {} positions: set {}={}, which holds a part "
        "of the answer, or shorten the prompt",
        needed.whole, positions, key, positions);
  return fmt::format(
      "the model has {} positions, so that no {} keeps any of it: shorten the prompt", positions,
      key);
}

}  // namespace snug::text
