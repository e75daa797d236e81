// The element types of tensors in GGUF files: floats, and blocks of quantised values. Numbers,
// names and sizes are those of ggml
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::formats {

// The values are the numbers in the files.
enum class GgmlType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  i32 = 26,
  bf16 = 30,
  mxfp4 = 39,
};
constexpr auto words_of(GgmlType /*type*/) {
  return base::words<GgmlType>({{GgmlType::f32, "f32"},
                                {GgmlType::f16, "f16"},
                                {GgmlType::q4_0, "q4_0"},
                                {GgmlType::q4_1, "q4_1"},
                                {GgmlType::q5_0, "q5_0"},
                                {GgmlType::q5_1, "q5_1"},
                                {GgmlType::q8_0, "q8_0"},
                                {GgmlType::q2_k, "q2_k"},
                                {GgmlType::q3_k, "q3_k"},
                                {GgmlType::q4_k, "q4_k"},
                                {GgmlType::q5_k, "q5_k"},
                                {GgmlType::q6_k, "q6_k"},
                                {GgmlType::i32, "i32"},
                                {GgmlType::bf16, "bf16"},
                                {GgmlType::mxfp4, "mxfp4"}});
}

// A block: this many consecutive values of a row take this many bytes. A float is a block of one.
struct BlockSize {
  int64_t elements = 1;
  int64_t bytes = 0;
};
constexpr BlockSize block_size(GgmlType type) {
  switch (type) {
    case GgmlType::f32:
    case GgmlType::i32:
      return {1, 4};
    case GgmlType::f16:
    case GgmlType::bf16:
      return {1, 2};
    case GgmlType::q4_0:
      return {32, 18};
    case GgmlType::q4_1:
      return {32, 20};
    case GgmlType::q5_0:
      return {32, 22};
    case GgmlType::q5_1:
      return {32, 24};
    case GgmlType::q8_0:
      return {32, 34};
    case GgmlType::mxfp4:
      return {32, 17};
    case GgmlType::q2_k:
      return {256, 84};
    case GgmlType::q3_k:
      return {256, 110};
    case GgmlType::q4_k:
      return {256, 144};
    case GgmlType::q5_k:
      return {256, 176};
    case GgmlType::q6_k:
      return {256, 210};
  }
  return {};
}
// The bytes of this many values, which must be whole blocks.
constexpr int64_t stored_bytes(GgmlType type, int64_t elements) {
  const BlockSize size = block_size(type);
  return elements / size.elements * size.bytes;
}

}  // namespace snug::formats
