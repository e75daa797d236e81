// The gated delta rule over one chunk of one value head (program/kinds/recurrence/
// gated_delta_rule.h), in fp32, by products of blocks. All matrices are row-major with columns
// padded to whole blocks by zeros; so are the rows of a chunk with fewer tokens than rows.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

// Sizes of matrices are multiples of this.
inline constexpr int64_t kDeltaBlock = 32;
// The most tokens of a chunk.
inline constexpr int64_t kDeltaRows = 64;

// One chunk. q and k are normed, and so is v's head: (rows, dk), (rows, dk), (rows, dv). `decay`
// has the sum of g of the chunk's tokens up to each one, and stays what it was last where there is
// no token; beta is zero there.
struct DeltaChunk {
  int64_t rows = 0;  // of the tokens, in whole blocks
  int64_t dk = 0;    // padded
  int64_t dv = 0;    // padded
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* decay = nullptr;  // (rows)
  const float* beta = nullptr;   // (rows)
};

// What the backward pass of a chunk reads and makes.
struct DeltaChunkGrad {
  const float* state = nullptr;  // (dk, dv), before the chunk
  float* dstate = nullptr;       // (dk, dv): of the state after the chunk, then of that before it
  const float* d_o = nullptr;    // (rows, dv)
  float* dq = nullptr;           // (rows, dk), which is added to
  float* dk = nullptr;           // (rows, dk), which is added to
  float* dv = nullptr;           // (rows, dv)
  float* dg = nullptr;           // (rows)
  float* dbeta = nullptr;        // (rows)
};

// Floats of scratch for a chunk with such padded sizes.
constexpr int64_t delta_forward_floats(int64_t dk, int64_t dv) {
  return kDeltaRows * (dk + dv + 3 * kDeltaRows + 2);
}
constexpr int64_t delta_backward_floats(int64_t dk, int64_t dv) {
  return kDeltaRows * (2 * dk + 5 * dv + 5 * kDeltaRows + 2) + 2 * dk * dv;
}

struct DeltaRuleKernels {
  // y = f x for each row, with f = scale / sqrt(|x|^2 + epsilon), which goes to `factors` (rows).
  // y may be x.
  void (*norm)(const float* x, int64_t rows, int64_t columns, float scale, float* y,
               float* factors);
  // dx = f (dy - y (y dy) / scale^2), with y and f as `norm` has made them. dx may be dy.
  void (*norm_grad)(const DeltaChunk& sizes, const float* y, const float* factors, float scale,
                    float* dx);
  // Steps the state (dk, dv) over the chunk; o (rows, dv) is what the queries read. Null: nobody
  // asks for it.
  void (*forward)(const DeltaChunk& chunk, float* state, float* o, float* scratch);
  void (*backward)(const DeltaChunk& chunk, const DeltaChunkGrad& grad, float* scratch);
};

}  // namespace snug::backends::cpu
