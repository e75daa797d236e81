// MXFP4, the 4-bit storage of the OCP Microscaling specification 1.0 as gpt-oss folders have it:
// blocks of 32 elements along a row, each with a power of two in a byte and a code of FP4 (E2M1)
// per element. A stack of matrices "w" of shape (matrices, out, in) lies in a folder as two
// tensors,
//
//   w_blocks   u8 (matrices, out, in / 32, 16)   two codes a byte, the earlier in the lower half
//   w_scales   u8 (matrices, out, in / 32)       the exponent plus 127
//
// Threading: pure functions; distinct outputs may be made in parallel.
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

// The two tensors that hold a stack of this name and shape, or nothing. Throws UserError where one
// is there alone, or has another shape or type than this asks for.
std::optional<Mxfp4Parts> find_mxfp4(const TensorIndex& index, std::string_view name,
                                     int64_t matrices, int64_t out, int64_t in);
// Whether a tensor of this name is a part of a stack, by its name: the stack's name, or nothing.
std::optional<std::string_view> mxfp4_stack_of(std::string_view name);

// One matrix (out, in), transposed, as models multiply it: `values` is (in, out). bf16 holds every
// value that is in its range; the others become infinite. A scale of 255, which is no number, makes
// NaN.
struct Mxfp4Matrix {
  const uint8_t* blocks = nullptr;
  const uint8_t* scales = nullptr;
  int64_t out = 0;
  int64_t in = 0;  // a multiple of kMxfp4BlockSize
};
void decode_transposed(const Mxfp4Matrix& matrix, base::BFloat16* values);

}  // namespace snug::formats
