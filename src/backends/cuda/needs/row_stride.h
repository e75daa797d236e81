// How far apart the rows of a matrix of the program lie.
#pragma once

#include <cstdint>

#include "program/tensor.h"

namespace snug::backends::cuda {

// Elements from one row to the next of a tensor of two dimensions, a view or not.
inline int64_t row_stride(const program::Tensor& tensor) {
  return tensor.is_view() ? tensor.view.strides[0] : tensor.shape[1];
}

}  // namespace snug::backends::cuda
