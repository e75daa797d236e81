// FP8 (E4M3, of the OCP 8-bit specification 1.0: no infinities, NaN at all ones), as in folders of
// transformers' FineGrainedFP8Config. A linear "w" of shape (out, in) is stored as two tensors,
//
//   w             F8_E4M3 (out, in)
//   w_scale_inv   the factors of its values, floats: one for all of them, or (rows, columns), each
//                 for a block of out / rows by in / columns values
//
// Threading: pure functions; different outputs may be computed in parallel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "formats/folder/tensor_index.h"

namespace snug::formats {

// What quant_method of config.json says of such a folder.
inline constexpr std::string_view kFp8Method = "fp8";

struct Fp8Parts {
  const IndexedTensor* codes = nullptr;
  const IndexedTensor* scales = nullptr;
  int64_t scale_rows = 1;
  int64_t scale_columns = 1;
};

// The tensors of a linear in FP8 with this name; nothing if it is stored in another type. Throws
// UserError if its scales are missing or do not divide it.
std::optional<Fp8Parts> find_fp8(const TensorIndex& index, std::string_view name);
// The linear in FP8 to which a tensor belongs that is none of its values: its scales, or the scale
// of its input, which only programs that multiply in FP8 read. Nothing for any other tensor.
std::optional<std::string> fp8_linear_of(const TensorIndex& index, std::string_view name);

// The value of a code.
float fp8_value(uint8_t code);

// Values of neighbours in a row that have one scale, multiplied in fp32 and rounded to bf16 once.
struct Fp8Run {
  const uint8_t* codes = nullptr;
  int64_t count = 0;
  float scale = 0;
};
void decode_fp8(const Fp8Run& run, base::BFloat16* values);

}  // namespace snug::formats
