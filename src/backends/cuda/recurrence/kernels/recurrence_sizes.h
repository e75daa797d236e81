// The grid and the scratch of the gated delta rule (gated_delta_rule.h). This arithmetic needs no
// CUDA header, so that plans can be made without the toolkit.
#pragma once

#include <cstdint>

#include "backends/cuda/device/launch_shape.h"

namespace snug::backends::cuda {

// Tokens of a chunk: program::kDeltaChunkTokens.
inline constexpr int64_t kDeltaTokens = 64;
// Blocks of threads, which is about as many as a large GPU has multiprocessors: each has a head,
// and every so many segments of it.
inline constexpr int64_t kDeltaBlocks = 128;

struct DeltaSizes {
  int64_t tokens = 0;
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t dk = 0;
  int64_t dv = 0;
  int64_t segments = 0;

  constexpr int64_t state() const { return dk * dv; }
  // Blocks that share the segments of a head.
  constexpr int64_t blocks_of_head() const {
    const int64_t wanted = ceil_div(kDeltaBlocks, value_heads);
    return wanted < segments ? wanted : segments;
  }
  constexpr int64_t blocks() const { return value_heads * blocks_of_head(); }
  // Floats of a block: q, k, v, w and o of a chunk, three matrices of its tokens, numbers of each
  // token, and a state.
  constexpr int64_t forward_floats() const {
    return kDeltaTokens * (2 * dk + 3 * dv + 3 * kDeltaTokens + 4) + state();
  }
  // Of the backward pass: six matrices of keys and six of values, four of tokens, numbers of each
  // token, a state and its gradient.
  constexpr int64_t backward_floats() const {
    return kDeltaTokens * (6 * dk + 6 * dv + 4 * kDeltaTokens + 6) + 2 * state();
  }
  // States between chunks, of all heads.
  constexpr int64_t states() const {
    return ceil_div(tokens, kDeltaTokens) * value_heads * state();
  }
  // dq or dk of each value head, before those that share a key head are added up.
  constexpr int64_t key_gradients() const { return tokens * value_heads * dk; }

  // Scratch, at whose end is a number of each token.
  constexpr int64_t forward_scratch() const { return blocks() * forward_floats(); }
  constexpr int64_t backward_scratch() const {
    return blocks() * backward_floats() + states() + 2 * key_gradients();
  }
};

}  // namespace snug::backends::cuda
