// Quantises fp32 values to the blocks of GGUF files, and back. Both directions give the bytes and
// values of ggml's reference code (without an importance matrix), which tests compare. Pure;
// distinct destinations may be filled in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/gguf/ggml_type.h"

namespace snug::formats {

// Whether quantise_blocks writes this type: all of GgmlType except i32 and q2_k.
bool can_quantise(GgmlType type);

// Writes stored_bytes(type, values.size()) bytes. The values are one or several whole rows, each a
// multiple of the block's elements; all are finite. Floats are rounded to nearest even.
void quantise_blocks(GgmlType type, std::span<const float> values, std::span<std::byte> blocks);

// The inverse: blocks of `values.size()` values.
void dequantise_blocks(GgmlType type, std::span<const std::byte> blocks, std::span<float> values);

}  // namespace snug::formats
