// The distance between rows of a program's matrix, and whether kernels can read it as vectors.
#pragma once

#include <cstdint>

#include "program/ir/tensor.h"

namespace snug::backends::cuda {

// Elements from one row to the next of a two-dimensional tensor, which may be a view.
inline int64_t row_stride(const program::Tensor& tensor) {
  return tensor.is_view() ? tensor.view.strides[0] : tensor.shape[1];
}

// Whether the type is a 16-bit float that the tensor cores multiply. All 16-bit float operands of
// an operation have the same type (has_known_types).
constexpr bool is_narrow(base::DType type) {
  return type == base::DType::bf16 || type == base::DType::f16;
}

}  // namespace snug::backends::cuda
