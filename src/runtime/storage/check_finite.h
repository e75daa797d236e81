// A weight that is infinite or no number makes every answer one, hundreds of steps later: it is
// refused where it is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "formats/folder/tensor_index.h"

namespace snug::runtime {

// Consecutive elements of a tensor, in memory of the host.
struct Values {
  base::DType dtype = base::DType::f32;
  const void* data = nullptr;
  int64_t first = 0;  // their place in the tensor
  int64_t elements = 0;
  bool transposed = false;  // the place is that in the transpose of a matrix
};

// "[3, 17]": where an element lies in a tensor of this shape.
std::string position_text(const std::vector<int64_t>& shape, int64_t element);

// What a file holds: throws UserError naming file, tensor and position of the first infinity or
// NaN. Types of whole numbers hold none.
void check_finite(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                  const Values& values);

// Checks what was rounded on the way, from values that are finite themselves.
void check_rounded(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                   const Values& values);

// Checks a weight that was quantised, or its transpose: `absmax` has the largest absolute values of
// the blocks, from block `first_block` on.
void check_rounded_blocks(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                          int64_t first_block, std::span<const float> absmax,
                          bool transposed = false);

}  // namespace snug::runtime
