// What the size of an operation's scratch rests on.
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::program {

enum class WorkspaceBasis : uint8_t {
  computed,  // own kernels lay it out, by the function that gives its size
  asked,     // a library was asked for this very operation, and it takes that size
  bound,     // a table, or a limit that a library is given: it may take less
};
constexpr auto words_of(WorkspaceBasis /*type*/) {
  return base::words<WorkspaceBasis>({{WorkspaceBasis::computed, "computed"},
                                      {WorkspaceBasis::asked, "asked"},
                                      {WorkspaceBasis::bound, "bound"}});
}

}  // namespace snug::program
