// Attention in tiles and its derivative. What each query sees, and who sees each key, is first
// written to scratch from the bounds of the segments; the tile kernels know ranges only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// Biases by relative position (distance_biases.h): a head's of a query x positions after a key lies
// at zero[x], for x of -reach to reach, and is the same beyond.
struct DistanceBiases {
  const float* zero = nullptr;  // of the first head; null: there are none
  int64_t head_step = 0;        // from one head to the next
  int32_t reach = 0;
  bool both_ways = false;           // keys after their query have buckets of their own
  int32_t buckets = 0;              // of one direction
  const int32_t* begins = nullptr;  // (buckets): the smallest distance of each
};

struct AttentionForm {
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  int64_t window = 0;
  float softcap = 0.0F;      // of scaled scores; 0: none
  float alibi_scale = 0.0F;  // 0: no slopes
  DistanceBiases biases;
};

struct AttentionShape {
  AttentionForm form;
  int64_t q_tokens = 0;
  int64_t k_tokens = 0;
  // (q_tokens): the key at no distance from each query. Null without biases by relative position:
  // it is the last that the query sees.
  const int32_t* diagonals = nullptr;
};

struct RangesRun {
  AttentionShape shape;
  int64_t segments = 0;
  const int32_t* q_bounds = nullptr;  // (segments, 2)
  const int32_t* k_bounds = nullptr;
  TokenRange* keys = nullptr;     // (q_tokens): what each query sees
  TokenRange* queries = nullptr;  // (k_tokens): which queries may see each key
  int32_t* diagonals = nullptr;   // those of the shape; null: not wanted
};
void find_ranges(const RangesRun& run, cudaStream_t stream);

struct AttentionRun {
  AttentionShape shape;
  const TokenRange* keys = nullptr;
  const TokenRange* queries = nullptr;
  DeviceRows q, k, v, o;
  float* lse = nullptr;  // (heads, q_tokens)
  DeviceRows sinks;      // (heads); without data: none
};
void attention(const AttentionRun& run, cudaStream_t stream);

struct AttentionGradRun {
  AttentionShape shape;
  const TokenRange* keys = nullptr;
  const TokenRange* queries = nullptr;
  DeviceRows d_o, q, k, v, o;
  const float* lse = nullptr;
  float* delta = nullptr;  // (heads, q_tokens): scratch, the dot products of d_o and o
  DeviceRows dq, dk, dv;
  float* bias_sums = nullptr;  // (bias_blocks, heads, buckets of all directions); null: not wanted
};
void attention_grad(const AttentionGradRun& run, cudaStream_t stream);
// Only delta: what either form of the gradient begins with.
void find_delta(const AttentionGradRun& run, cudaStream_t stream);

// Attention and its gradient on the tensor cores. They require one format of 16 bits, heads of a
// multiple of 8 and at most kMaxMatrixDims, and q, k, v and d_o whose rows begin at multiples of 16
// bytes.
void attention_matrix(const AttentionRun& run, cudaStream_t stream);
void attention_grad_matrix(const AttentionGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
