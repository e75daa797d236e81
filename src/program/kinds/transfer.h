// A copy between two spaces in two halves, so that it goes on beside what is computed meanwhile:
// transfer begins it, await ends it.
#pragma once

#include <array>
#include <tuple>

#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x in one space. writes: y, the same values in another space; both dense, of one shape and
// element type. Begins once all operations before it that compute are done. Until an await of y has
// run, nothing else may touch y, and nothing may write x.
struct Transfer {
  bool operator==(const Transfer&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Transfer>(0, "x");
  static constexpr auto kY = write<Transfer>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr Traits kTraits{.begins_copy = true};
};

// reads: x, updates: y, of a transfer that was begun. Ends when y holds what x held, and computes
// nothing. Touching both keeps their bytes apart from all else until then.
struct Await {
  bool operator==(const Await&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Await>(0, "x");
  static constexpr auto kY = update<Await>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr Traits kTraits{.ends_copy = true};
};

}  // namespace snug::program
