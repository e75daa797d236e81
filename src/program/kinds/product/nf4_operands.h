// The shape rule of a weight stored as NF4, for every kind that has one among its operands.
#pragma once

#include "program/ir/program.h"
#include "program/kinds/product/nf4.h"
#include "program/kinds/shape_rule.h"

namespace snug::program {

// The operands of a stored weight of so many elements. `attributes` say whether it is nested.
template <typename Struct>
void check_stored_weight(ShapeRule& rule, const Struct& attributes, int64_t elements) {
  rule.type(Struct::kCodes, DType::u8);
  rule.shape(Struct::kCodes, Shape{nf4_code_bytes(elements), 1});
  if (!attributes.nested) return rule.measure(Struct::kAbsmax, Shape{nf4_blocks(elements)});
  rule.type(Struct::kAbsmax, DType::u8);
  rule.shape(Struct::kAbsmax, Shape{nf4_blocks(elements)});
  rule.measure(Struct::kNestedAbsmax, Shape{nf4_nested_blocks(elements)});
  rule.measure(Struct::kNestedMap, Shape{kNf4MapSize});
  rule.measure(Struct::kNestedOffset, Shape{1});
}

}  // namespace snug::program
