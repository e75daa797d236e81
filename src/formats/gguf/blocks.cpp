#include "formats/gguf/blocks.h"

#include "base/error.h"
#include "formats/gguf/blocks/block_kinds.h"

namespace snug::formats {
namespace {

struct BlockFunctions {
  QuantiseBlocks* quantise = nullptr;
  DequantiseBlocks* dequantise = nullptr;
};

BlockFunctions functions_of(GgmlType type) {
  switch (type) {
    case GgmlType::f32:
      return {quantise_f32, dequantise_f32};
    case GgmlType::f16:
      return {quantise_f16, dequantise_f16};
    case GgmlType::bf16:
      return {quantise_bf16, dequantise_bf16};
    case GgmlType::q4_0:
      return {quantise_q4_0, dequantise_q4_0};
    case GgmlType::q4_1:
      return {quantise_q4_1, dequantise_q4_1};
    case GgmlType::q5_0:
      return {quantise_q5_0, dequantise_q5_0};
    case GgmlType::q5_1:
      return {quantise_q5_1, dequantise_q5_1};
    case GgmlType::q8_0:
      return {quantise_q8_0, dequantise_q8_0};
    case GgmlType::mxfp4:
      return {quantise_mxfp4_blocks, dequantise_mxfp4_blocks};
    case GgmlType::q2_k:
      return {nullptr, dequantise_q2_k};
    case GgmlType::q3_k:
      return {quantise_q3_k, dequantise_q3_k};
    case GgmlType::q4_k:
      return {quantise_q4_k, dequantise_q4_k};
    case GgmlType::q5_k:
      return {quantise_q5_k, dequantise_q5_k};
    case GgmlType::q6_k:
      return {quantise_q6_k, dequantise_q6_k};
    case GgmlType::i32:
      return {};
  }
  return {};
}

// The number of blocks that hold the values. Checks both sizes.
int64_t checked_blocks(GgmlType type, int64_t values, int64_t bytes) {
  const BlockSize size = block_size(type);
  SNUG_CHECK(values % size.elements == 0, "{} values of {} are no whole blocks of {}", values,
             base::word_of(type), size.elements);
  SNUG_CHECK(bytes == stored_bytes(type, values), "{} values of {} have {} bytes, not {}", values,
             base::word_of(type), stored_bytes(type, values), bytes);
  return values / size.elements;
}

}  // namespace

bool can_quantise(GgmlType type) { return functions_of(type).quantise != nullptr; }

void quantise_blocks(GgmlType type, std::span<const float> values, std::span<std::byte> blocks) {
  const int64_t count = checked_blocks(type, std::ssize(values), std::ssize(blocks));
  QuantiseBlocks* quantise = functions_of(type).quantise;
  SNUG_CHECK(quantise != nullptr, "nothing is quantised to {}", base::word_of(type));
  quantise(values.data(), count, reinterpret_cast<uint8_t*>(blocks.data()));
}

void dequantise_blocks(GgmlType type, std::span<const std::byte> blocks, std::span<float> values) {
  const int64_t count = checked_blocks(type, std::ssize(values), std::ssize(blocks));
  DequantiseBlocks* dequantise = functions_of(type).dequantise;
  SNUG_CHECK(dequantise != nullptr, "{} holds no quantised values", base::word_of(type));
  dequantise(reinterpret_cast<const uint8_t*>(blocks.data()), count, values.data());
}

}  // namespace snug::formats
