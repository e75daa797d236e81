// The shape rule of a weight stored as NF4, for every kind that has one among its operands.
#pragma once

#include "program/kinds/nf4.h"
#include "program/kinds/shape_rule.h"
#include "program/program.h"

namespace snug::program {

// The operands of a stored weight of so many elements. `attributes` say whether it is nested.
template <typename Struct>
void check_stored_weight(ShapeRule& rule, const Struct& attributes, const OperationView& view,
                         int64_t elements) {
  const Tensor& codes = view[Struct::kCodes];
  const Tensor& absmax = view[Struct::kAbsmax];
  rule.type({"codes", codes}, DType::u8);
  rule.shape({"codes", codes}, Shape{nf4_code_bytes(elements), 1});
  if (!attributes.nested) return rule.measure({"absmax", absmax}, Shape{nf4_blocks(elements)});
  rule.type({"absmax", absmax}, DType::u8);
  rule.shape({"absmax", absmax}, Shape{nf4_blocks(elements)});
  rule.measure({"nested_absmax", view[Struct::kNestedAbsmax]}, Shape{nf4_nested_blocks(elements)});
  rule.measure({"nested_map", view[Struct::kNestedMap]}, Shape{kNf4MapSize});
  rule.measure({"nested_offset", view[Struct::kNestedOffset]}, Shape{1});
}

}  // namespace snug::program
