// An infinite or NaN weight would make every output NaN, perhaps only hundreds of steps later, so
// it is refused when it is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "formats/folder/tensor_index.h"

namespace snug::runtime {

// Consecutive elements of a tensor, in host memory.
struct Values {
  base::DType dtype = base::DType::f32;
  const void* data = nullptr;
  int64_t first = 0;  // index of the first of them in the tensor
  int64_t elements = 0;
  bool transposed = false;  // `first` is an index in the transpose of the matrix
};

// The indices of an element in a tensor of this shape: "[3, 17]".
std::string position_text(const std::vector<int64_t>& shape, int64_t element);

// Checks values from a file: throws a UserError with file, tensor and position for the first
// infinity or NaN. Integer types have none.
void check_finite(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                  const Values& values);

// Checks values after rounding to a narrower type; before it they were finite.
void check_rounded(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                   const Values& values);

// Checks a weight that was quantised, or its transpose: `absmax` has the largest absolute value of
// each block, from block `first_block` on.
void check_rounded_blocks(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                          int64_t first_block, std::span<const float> absmax,
                          bool transposed = false);

}  // namespace snug::runtime
