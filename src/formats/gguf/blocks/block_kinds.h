// The functions behind quantise_blocks and dequantise_blocks, one pair for each type of block. Only
// for blocks.cpp. The layouts of the blocks are described where they are written.
#pragma once

#include <cstdint>

namespace snug::formats {

using QuantiseBlocks = void(const float* values, int64_t blocks, uint8_t* bytes);
using DequantiseBlocks = void(const uint8_t* bytes, int64_t blocks, float* values);

// Floats, each a block of its own.
QuantiseBlocks quantise_f32, quantise_f16, quantise_bf16;
DequantiseBlocks dequantise_f32, dequantise_f16, dequantise_bf16;

// Blocks of 32 values.
QuantiseBlocks quantise_q4_0, quantise_q4_1, quantise_q5_0, quantise_q5_1, quantise_q8_0;
DequantiseBlocks dequantise_q4_0, dequantise_q4_1, dequantise_q5_0, dequantise_q5_1,
    dequantise_q8_0;
QuantiseBlocks quantise_mxfp4_blocks;
DequantiseBlocks dequantise_mxfp4_blocks;

// Blocks of 256 values.
QuantiseBlocks quantise_q3_k, quantise_q4_k, quantise_q5_k, quantise_q6_k;
DequantiseBlocks dequantise_q2_k, dequantise_q3_k, dequantise_q4_k, dequantise_q5_k,
    dequantise_q6_k;

}  // namespace snug::formats
