// MXFP4, the 4-bit format of the OCP Microscaling specification 1.0, as in gpt-oss folders: blocks
// of 32 elements along a row, each with a power of two as a one-byte exponent, and an FP4 (E2M1)
// code per element. A stack of matrices "w" with shape (matrices, out, in) is stored as two
// tensors,
//
//   w_blocks   u8 (matrices, out, in / 32, 16)   two codes per byte, the first in the lower half
//   w_scales   u8 (matrices, out, in / 32)       the exponent plus 127
//
// Threading: pure functions; different outputs may be computed in parallel.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "formats/folder/tensor_index.h"

namespace snug::formats {

inline constexpr int64_t kMxfp4BlockSize = 32;
inline constexpr int64_t kMxfp4BlockBytes = kMxfp4BlockSize / 2;

struct Mxfp4Parts {
  const IndexedTensor* blocks = nullptr;
  const IndexedTensor* scales = nullptr;
};

// The two tensors that hold a stack with this name and shape, or nothing. Throws UserError if only
// one of them exists, or one has another shape or type.
std::optional<Mxfp4Parts> find_mxfp4(const TensorIndex& index, std::string_view name,
                                     int64_t matrices, int64_t out, int64_t in);
// The name of the stack to which a tensor belongs according to its name, or nothing.
std::optional<std::string_view> mxfp4_stack_of(std::string_view name);

// One matrix (out, in), decoded into its transpose, the layout in which models multiply it:
// `values` is (in, out). bf16 represents all values in its range exactly; larger ones become
// infinite. The scale 255 is NaN and gives NaN.
struct Mxfp4Matrix {
  const uint8_t* blocks = nullptr;
  const uint8_t* scales = nullptr;
  int64_t out = 0;
  int64_t in = 0;  // a multiple of kMxfp4BlockSize
};
void decode_transposed(const Mxfp4Matrix& matrix, base::BFloat16* values);

}  // namespace snug::formats
