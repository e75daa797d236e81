// How a kind names its operands. A kind's struct lists them in kOperands, in the order in which an
// operation holds those of each access; code asks for them by name only:
//
//   view[Rope::kTable]       the Tensor        invocation[Rope::kTable]    the Buffer
//
// Whether an operand is there, and whether an output is overwritten or added to, may depend on an
// attribute of the kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snug::program {

enum class Access : uint8_t { read, write, update };

// What an operand is called. Code takes it from a kind's operand (Rope::kTable.name), from a trait
// or from the names below, and never makes one of a text.
struct OperandName {
  std::string_view text;
  constexpr OperandName() = default;
  constexpr explicit OperandName(std::string_view name) : text(name) {}
  constexpr bool empty() const { return text.empty(); }
  bool operator==(const OperandName&) const = default;
};

// Operands that kinds of one sort have in common: optimizers (Category::optimizer), and what adds
// another tensor to its output.
inline constexpr OperandName kWeightOperand{"weight"};
inline constexpr OperandName kGradientOperand{"gradient"};
inline constexpr OperandName kFactorOperand{"factor"};
inline constexpr OperandName kAddendOperand{"addend"};

template <typename Struct>
struct Operand {
  size_t position = 0;  // in kOperands
  OperandName name;
  Access access = Access::read;
  bool Struct::*present = nullptr;  // the operand is there where this holds; null: always
  bool Struct::*updated = nullptr;  // an output is updated where this holds, and written elsewhere
  bool repeated = false;            // any number of tensors, at least one; the last of its access
  bool Struct::*absent = nullptr;   // the operand is not there where this holds; null: it is
};

template <typename Struct>
constexpr Operand<Struct> read(size_t position, std::string_view name,
                               bool Struct::*present = nullptr) {
  return {position, OperandName(name), Access::read, present};
}

template <typename Struct>
constexpr Operand<Struct> read_all(size_t position, std::string_view name) {
  return {position, OperandName(name), Access::read, nullptr, nullptr, true};
}

template <typename Struct>
constexpr Operand<Struct> write(size_t position, std::string_view name,
                                bool Struct::*present = nullptr) {
  return {position, OperandName(name), Access::write, present};
}

template <typename Struct>
constexpr Operand<Struct> write_or_update(size_t position, std::string_view name,
                                          bool Struct::*updated, bool Struct::*present = nullptr) {
  return {position, OperandName(name), Access::write, present, updated};
}

template <typename Struct>
constexpr Operand<Struct> update(size_t position, std::string_view name,
                                 bool Struct::*present = nullptr) {
  return {position, OperandName(name), Access::update, present};
}

template <typename Struct>
constexpr Operand<Struct> update_all(size_t position, std::string_view name) {
  return {position, OperandName(name), Access::update, nullptr, nullptr, true};
}

// An output that may share the bytes of an input, in a kind's list kInPlace: they may where the
// input dies here and both have the same shape and element type.
template <typename Struct>
struct InPlaceOperands {
  Operand<Struct> output;
  Operand<Struct> input;
};

// Where an operation holds an operand.
struct Slot {
  bool present = true;
  Access access = Access::read;
  size_t index = 0;  // in the operation's list of this access
};

template <typename Struct>
constexpr Slot slot_of(const Struct& attributes, const Operand<Struct>& operand) {
  const auto is_present = [&](const Operand<Struct>& each) {
    return (each.present == nullptr || attributes.*each.present) &&
           (each.absent == nullptr || !(attributes.*each.absent));
  };
  const auto access_of = [&](const Operand<Struct>& each) {
    return each.updated != nullptr && attributes.*each.updated ? Access::update : each.access;
  };
  Slot slot{is_present(operand), access_of(operand), 0};
  for (const Operand<Struct>& each : Struct::kOperands) {
    if (each.position == operand.position) break;
    if (is_present(each) && access_of(each) == slot.access) ++slot.index;
  }
  return slot;
}

}  // namespace snug::program
