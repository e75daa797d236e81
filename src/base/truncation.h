// What a record that is longer than max_length loses, by its names in recipes.
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::base {

enum class Truncation : uint8_t {
  end,       // the tokens at its end
  keep_end,  // the oldest turns of a conversation, or the beginning of a prompt
  drop,      // everything: it is left out
};

constexpr auto words_of(Truncation /*type*/) {
  return words<Truncation>(
      {{Truncation::end, "end"}, {Truncation::keep_end, "keep_end"}, {Truncation::drop, "drop"}});
}

}  // namespace snug::base
