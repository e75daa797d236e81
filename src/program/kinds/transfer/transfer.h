// Copies between two spaces. copy runs in order with what computes. transfer and await are one in
// two halves, so that it goes on next to what is computed meanwhile: the first begins it, the
// second ends it.
#pragma once

#include <array>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x in one space. writes: y, the same values in another space; both dense, of one shape and
// element type. The end in host memory is the host's between runs: what it gives a program (a
// batch) or takes from it (a loss). Each run of the program copies once.
struct Copy {
  bool operator==(const Copy&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Copy>(0, "x");
  static constexpr auto kY = write<Copy>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr Traits kTraits{.copying = Copying::with_host};
};

// reads: x in one space. writes: y, the same values in another space; both dense, of one shape and
// element type. Begins once all operations before it that compute are done. Until an await of y has
// run, nothing else may touch y, and nothing may write x.
struct Transfer {
  bool operator==(const Transfer&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Transfer>(0, "x");
  static constexpr auto kY = write<Transfer>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr Traits kTraits{.copying = Copying::begins};
};

// reads: x, updates: y, of a transfer that was begun, or all of a collective
// (program/kinds/transfer/collective.h), whose scratch is its workspace too; without x where ranks
// change tensors in place. Ends when they hold what they shall, and computes nothing. Touching all
// of them keeps their bytes apart from all else until then.
struct Await {
  bool in_place = false;
  bool operator==(const Await&) const = default;
  static constexpr auto kFields = std::tuple{Field{"in_place", &Await::in_place}};
  static constexpr Operand<Await> kX{0,    OperandName("x"), Access::read, nullptr, nullptr,
                                     true, &Await::in_place};
  static constexpr auto kY = update_all<Await>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr Traits kTraits{.copying = Copying::ends};
};

}  // namespace snug::program
