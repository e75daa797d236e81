// How far apart the rows of a matrix of the program lie, and whether kernels read them in vectors.
#pragma once

#include <cstdint>

#include "program/ir/tensor.h"

namespace snug::backends::cuda {

// Elements from one row to the next of a tensor of two dimensions, a view or not.
inline int64_t row_stride(const program::Tensor& tensor) {
  return tensor.is_view() ? tensor.view.strides[0] : tensor.shape[1];
}

// Whether the type is one of 16 bits that the tensor cores multiply. Operands of one operation that
// have such a type have the same (has_known_types).
constexpr bool is_narrow(base::DType type) {
  return type == base::DType::bf16 || type == base::DType::f16;
}

}  // namespace snug::backends::cuda
