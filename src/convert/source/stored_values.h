// Values in fp32 of what files hold in any element type of floats, in NF4 or in MXFP4. Reads in
// pieces that stay in a core's cache, through memory on the stack. Threading: pure; distinct
// destinations may be filled in parallel.
#pragma once

#include <cstdint>
#include <span>

#include "formats/folder/tensor_index.h"
#include "formats/quantization/mxfp4.h"
#include "formats/quantization/quant_state.h"

namespace snug::convert {

// Elements [first, first + values.size()) of a tensor of floats. Throws UserError with file, tensor
// and position for an infinity or NaN.
void read_values(const formats::TensorIndex& index, const formats::IndexedTensor& tensor,
                 int64_t first, std::span<float> values);

// The same of a weight in NF4, in the order of its codes: code value x scale, the scale of a nested
// block map[absmax] x nested_absmax + offset, each product and sum rounded to fp32 on its own
// (program/kinds/product/nf4.h).
void read_values(const formats::TensorIndex& index, const formats::Nf4Parts& parts, int64_t first,
                 std::span<float> values);

// One expert of a stack in MXFP4: (in, out), the transpose of what the file holds.
struct Mxfp4Expert {
  const formats::Mxfp4Parts& parts;
  int64_t expert = 0;
  int64_t out = 0;
  int64_t in = 0;

  int64_t block_bytes() const { return out * in / 2; }
  int64_t scale_bytes() const { return out * in / formats::kMxfp4BlockSize; }
  // The memory that reading it allocates.
  int64_t read_bytes() const;
};
void read_values(const formats::TensorIndex& index, const Mxfp4Expert& expert,
                 std::span<float> values);

}  // namespace snug::convert
