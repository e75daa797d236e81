// top_k: the largest elements of each row, such as the likeliest tokens of a row of logits.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"

namespace snug::program {

// reads: x (rows, n). writes: values (rows, k), ids (rows, k) i32: the k largest elements of each
// row and their columns, largest first and of equal ones the smaller column first. NaN and minus
// infinity are never among them: where a row has fewer others, minus infinity and -1 stand at its
// end.
struct TopK {
  int64_t k = 1;
  bool operator==(const TopK&) const = default;
  static constexpr auto kFields = std::tuple{Field{"k", &TopK::k}};
  static constexpr auto kX = read<TopK>(0, "x");
  static constexpr auto kValues = write<TopK>(1, "values");
  static constexpr auto kIds = write<TopK>(2, "ids");
  static constexpr std::array kOperands{kX, kValues, kIds};
};

}  // namespace snug::program
