// Weights stored as NF4 (Dettmers et al. 2023), in the layout of bitsandbytes: docs/nf4.md.
//
// A weight of E elements, flattened row by row, is a list of operands, in this order:
//
//   codes          (ceil(E / 2), 1) u8: two 4-bit codes a byte, the even element in the high half
//   absmax         (ceil(E / 64)): the scale of each block of 64; f32, or u8 when nested
//   nested_absmax  (ceil(blocks / 256)) f32      only when nested
//   nested_map     (256) f32                      only when nested
//   nested_offset  (1) f32                        only when nested
//
// An element is code value x scale, the scale of a nested block map[absmax] x nested_absmax +
// offset, each product and sum rounded to fp32 on its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/quantization/nf4.h"
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/product/product_algorithm.h"
#include "program/kinds/traits.h"

namespace snug::program {

using formats::kNf4BlockSize;
using formats::nf4_blocks;
using formats::nf4_code_bytes;

inline constexpr int64_t kNf4MapSize = 256;

// How many operands a stored weight has.
constexpr size_t nf4_operands(bool nested) { return nested ? 5 : 2; }

constexpr int64_t nf4_nested_blocks(int64_t elements) {
  return formats::nested_blocks(nf4_blocks(elements));
}

// reads: a stored weight. writes: w (out, in), rounded once to its element type.
struct DequantizeNf4 {
  bool nested = false;
  bool operator==(const DequantizeNf4&) const = default;
  static constexpr auto kFields = std::tuple{Field{"nested", &DequantizeNf4::nested}};
  static constexpr auto kCodes = read<DequantizeNf4>(0, "codes");
  static constexpr auto kAbsmax = read<DequantizeNf4>(1, "absmax");
  static constexpr auto kNestedAbsmax =
      read<DequantizeNf4>(2, "nested_absmax", &DequantizeNf4::nested);
  static constexpr auto kNestedMap = read<DequantizeNf4>(3, "nested_map", &DequantizeNf4::nested);
  static constexpr auto kNestedOffset =
      read<DequantizeNf4>(4, "nested_offset", &DequantizeNf4::nested);
  static constexpr auto kW = write<DequantizeNf4>(5, "w");
  static constexpr std::array kOperands{kCodes,     kAbsmax,       kNestedAbsmax,
                                        kNestedMap, kNestedOffset, kW};
};

// reads: x (m, in), then a stored weight, then the addend (m, out) if `addend`. writes: y (m, out)
// = x w^T [+ addend]. Fused: dequantize_nf4, then matmul with transpose_b; a backend that runs it
// need not round w on the way. The target decides the algorithm.
struct MatmulNf4 {
  bool nested = false;
  bool addend = false;
  ProductAlgorithm algorithm = ProductAlgorithm::loops;
  bool operator==(const MatmulNf4&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"nested", &MatmulNf4::nested}, Field{"addend", &MatmulNf4::addend},
                 Decision{"algorithm", &MatmulNf4::algorithm, Priced::by_kind}};
  static constexpr auto kX = read<MatmulNf4>(0, "x");
  static constexpr auto kCodes = read<MatmulNf4>(1, "codes");
  static constexpr auto kAbsmax = read<MatmulNf4>(2, "absmax");
  static constexpr auto kNestedAbsmax = read<MatmulNf4>(3, "nested_absmax", &MatmulNf4::nested);
  static constexpr auto kNestedMap = read<MatmulNf4>(4, "nested_map", &MatmulNf4::nested);
  static constexpr auto kNestedOffset = read<MatmulNf4>(5, "nested_offset", &MatmulNf4::nested);
  static constexpr auto kAddend = read<MatmulNf4>(6, kAddendOperand.text, &MatmulNf4::addend);
  static constexpr auto kY = write<MatmulNf4>(7, "y");
  static constexpr std::array kOperands{kX,         kCodes,        kAbsmax, kNestedAbsmax,
                                        kNestedMap, kNestedOffset, kAddend, kY};
  static constexpr Traits kTraits{.category = Category::product, .is_joinable = true};
};

}  // namespace snug::program
