// For backends that read operands directly in host memory: they record as extent the amount of work
// that follows from the values that they read.
#pragma once

#include <span>

#include "backends/invocation.h"

namespace snug::backends {

// A contiguous i32 operand.
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

// Records the extent of an operation that works only on rows whose entry in `operand` is not
// negative.
template <typename Struct>
void note_rows(const Invocation& invocation, const program::Operand<Struct>& operand) {
  if (invocation.trace == nullptr) return;
  const int64_t rows = program::rows_with_work(integers_in(invocation, operand));
  invocation.note_extent({.rows = static_cast<double>(rows)});
}

// Records the extent of an attention or its gradient, which goes segment by segment.
template <typename Attributes>
void note_segments(const Attributes& attention, const Invocation& invocation) {
  if (invocation.trace == nullptr) return;
  invocation.note_extent(extent_of(attention, integers_in(invocation, Attributes::kQBounds),
                                   integers_in(invocation, Attributes::kKBounds)));
}

}  // namespace snug::backends
