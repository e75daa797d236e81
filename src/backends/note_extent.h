// What a backend that reads operands where they lie, in memory of the host, notes of their extents:
// the amount that follows from the values which it read itself.
#pragma once

#include <span>

#include "backends/invocation.h"

namespace snug::backends {

// An i32 operand whose elements lie side by side.
template <typename Struct>
std::span<const int32_t> integers_in(const Invocation& invocation,
                                     const program::Operand<Struct>& operand) {
  const Buffer& buffer = invocation[operand];
  SNUG_CHECK(buffer.dtype == program::DType::i32, "{} is {}", operand.name.text,
             base::name_of(buffer.dtype));
  int64_t stride = 1;
  for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
    const auto at = static_cast<size_t>(axis);
    SNUG_CHECK(buffer.shape[axis] <= 1 || buffer.strides[at] == stride, "{} has gaps",
               operand.name.text);
    stride *= buffer.shape[axis];
  }
  return {buffer.as<const int32_t>(), static_cast<size_t>(buffer.elements())};
}

// Notes the extent of an operation that works on the rows whose entry in `operand` is not negative.
template <typename Struct>
void note_rows(const Invocation& invocation, const program::Operand<Struct>& operand) {
  if (invocation.trace == nullptr) return;
  const int64_t rows = program::rows_with_work(integers_in(invocation, operand));
  invocation.note_extent({.rows = static_cast<double>(rows)});
}

// Notes the extent of an attention or its gradient, which walks its segments.
template <typename Attributes>
void note_segments(const Attributes& attention, const Invocation& invocation) {
  if (invocation.trace == nullptr) return;
  invocation.note_extent(extent_of(attention, integers_in(invocation, Attributes::kQBounds),
                                   integers_in(invocation, Attributes::kKBounds)));
}

}  // namespace snug::backends
