// Which turns of a conversation are learned, by their names in recipes.
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::base {

enum class LearnedTurns : uint8_t {
  all,
  last,          // the user's last question and all that follows it
  last_message,  // the last message of a role that is learned
};

constexpr auto words_of(LearnedTurns /*type*/) {
  return words<LearnedTurns>({{LearnedTurns::all, "all"},
                              {LearnedTurns::last, "last"},
                              {LearnedTurns::last_message, "last_message"}});
}

}  // namespace snug::base
