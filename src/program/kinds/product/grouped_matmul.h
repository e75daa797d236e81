// grouped_matmul: a product for each expert, of the rows that it has (route.h) and its own matrix.
//
// How many rows an expert has stands in `bounds`, a tensor that the program itself makes, so no
// host knows it when the operation is queued. All experts together have exactly the rows that
// shapes say, whoever has them: the work is that of shapes, and there is no extent. Bounds cover
// all rows, in order: [0, b), [b, c), ...; an expert without rows has an empty range.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/product/product_choice.h"
#include "program/kinds/traits.h"

namespace snug::program {

// How the rows of an expert are multiplied.
struct ExpertChoice {
  // Rows that are multiplied at once; 0: the rows of an expert. What is left of an expert's rows is
  // cut into halves, fourths, ... of it. `algorithm` computes the pieces that it can, `rest` the
  // others.
  int64_t block_rows = 0;
  ProductAlgorithm algorithm = ProductAlgorithm::loops;
  ProductAlgorithm rest = ProductAlgorithm::loops;
  // Rows of an expert's gradient whose sums are made in scratch at once, each time from all rows of
  // b that the expert has; 0: sums are made in c.
  int64_t sum_rows = 0;
  bool operator==(const ExpertChoice&) const = default;
  // Priced alike: pieces are as many rows as an expert has on average, which the key's shape has,
  // up to a size that is the target's; rows of sums are as many as fit a cache, whatever the shape.
  static constexpr std::tuple kParts{Part{"algorithm", Priced::by_kind, &ExpertChoice::algorithm},
                                     Part{"block_rows", Priced::alike, &ExpertChoice::block_rows},
                                     Part{"rest_algorithm", Priced::by_word, &ExpertChoice::rest},
                                     Part{"sum_rows", Priced::alike, &ExpertChoice::sum_rows}};
};

// reads: a (rows, k); b (experts, k, n), or (experts, n, k) with transpose_b; bounds (experts, 2)
// i32. writes: c (rows, n): a row of a times op(b) of the expert that has it.
//
// `stored`: b is stored as NF4 (nf4.h), with `nested` or plain scales, and the elements of each
// expert's matrix are whole blocks. Backends dequantise the matrices of a few experts at a time, to
// the element type of a, into their workspace. There is no gradient of a stored b.
struct GroupedMatmul {
  bool transpose_b = false;
  bool stored = false;
  bool nested = false;
  // What the target decides.
  ExpertChoice choice = {};
  DenseOperands dense = {};
  bool operator==(const GroupedMatmul&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"transpose_b", &GroupedMatmul::transpose_b}, Field{"stored", &GroupedMatmul::stored},
      Field{"nested", &GroupedMatmul::nested}, Decision{"algorithm", &GroupedMatmul::choice},
      Decision{"dense", &GroupedMatmul::dense}};
  static constexpr auto kA = read<GroupedMatmul>(0, "a");
  static constexpr Operand<GroupedMatmul> kB{
      1, OperandName("b"), Access::read, nullptr, nullptr, false, &GroupedMatmul::stored};
  static constexpr auto kCodes = read<GroupedMatmul>(2, "codes", &GroupedMatmul::stored);
  static constexpr auto kAbsmax = read<GroupedMatmul>(3, "absmax", &GroupedMatmul::stored);
  static constexpr auto kNestedAbsmax =
      read<GroupedMatmul>(4, "nested_absmax", &GroupedMatmul::nested);
  static constexpr auto kNestedMap = read<GroupedMatmul>(5, "nested_map", &GroupedMatmul::nested);
  static constexpr auto kNestedOffset =
      read<GroupedMatmul>(6, "nested_offset", &GroupedMatmul::nested);
  static constexpr auto kBounds = read<GroupedMatmul>(7, "bounds");
  static constexpr auto kC = write<GroupedMatmul>(8, "c");
  static constexpr std::array kOperands{
      kA, kB, kCodes, kAbsmax, kNestedAbsmax, kNestedMap, kNestedOffset, kBounds, kC};
  static constexpr Traits kTraits{.category = Category::product};
};

// reads: a (rows, m), b (rows, n), bounds (experts, 2) i32. writes: c (experts, m, n), for each
// expert the transpose of its rows of a times its rows of b, zero where it has none; with
// `accumulate` updates c: c += ...
struct GroupedMatmulGrad {
  bool accumulate = false;
  ExpertChoice choice = {};  // of the rows over which the products sum
  DenseOperands dense = {};  // a of the rows of an expert, b for each block of sums
  bool operator==(const GroupedMatmulGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"accumulate", &GroupedMatmulGrad::accumulate},
                                             Decision{"algorithm", &GroupedMatmulGrad::choice},
                                             Decision{"dense", &GroupedMatmulGrad::dense}};
  static constexpr auto kA = read<GroupedMatmulGrad>(0, "a");
  static constexpr auto kB = read<GroupedMatmulGrad>(1, "b");
  static constexpr auto kBounds = read<GroupedMatmulGrad>(2, "bounds");
  static constexpr auto kC =
      write_or_update<GroupedMatmulGrad>(3, "c", &GroupedMatmulGrad::accumulate);
  static constexpr std::array kOperands{kA, kB, kBounds, kC};
  static constexpr Traits kTraits{.category = Category::product};
};

constexpr bool copies_operands(const GroupedMatmul& grouped) {
  return grouped.dense != DenseOperands{};
}
constexpr bool copies_operands(const GroupedMatmulGrad& grad) {
  return grad.dense != DenseOperands{};
}

}  // namespace snug::program
