// Tiled attention and its gradient. From the bounds of the segments, the ranges of keys that each
// query sees and of queries that see each key are first written to scratch; the tile kernels only
// use these ranges.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// Relative position biases (distance_biases.h): zero[x] is a head's bias for a query x positions
// after a key, for x from -reach to reach; larger distances have the same bias.
struct DistanceBiases {
  const float* zero = nullptr;  // points to distance 0 of the first head; null if there are none
  int64_t head_step = 0;        // elements from one head's table to the next
  int32_t reach = 0;
  bool both_ways = false;           // keys after their query have separate buckets
  int32_t buckets = 0;              // the number in one direction
  const int32_t* begins = nullptr;  // (buckets): the smallest distance in each bucket
};

struct AttentionForm {
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  int64_t window = 0;
  float softcap = 0.0F;      // applied to scaled scores; 0 means none
  float alibi_scale = 0.0F;  // 0 means no slopes
  DistanceBiases biases;
};

// The pages in which keys lie. Kernels then number the keys of segment s from s * places on, the
// first of them first: a tile holds keys of one segment alone, and which ones does not depend on
// the rest of the batch.
struct KeyPages {
  const int32_t* table = nullptr;  // (segments, pages); null: a key's number is its row
  int32_t pages = 0;               // of a segment
  int32_t page_tokens = 0;
  int64_t places = 0;  // numbers of a segment (key_places)
};

struct AttentionShape {
  AttentionForm form;
  int64_t q_tokens = 0;
  int64_t k_tokens = 0;  // with pages, the numbers of all segments
  KeyPages pages;
  // (q_tokens): the key at distance 0 from each query. Null without relative position biases: then
  // it is the last key that the query sees.
  const int32_t* diagonals = nullptr;
};

struct RangesRun {
  AttentionShape shape;
  int64_t segments = 0;
  const int32_t* q_bounds = nullptr;  // (segments, 2)
  const int32_t* k_bounds = nullptr;
  TokenRange* keys = nullptr;     // (q_tokens): the keys that each query sees
  TokenRange* queries = nullptr;  // (k_tokens): the queries that may see each key
  // With pages, instead of queries (k_tokens): the row of each key; -1 where no query sees it.
  int32_t* rows = nullptr;
  int32_t* diagonals = nullptr;  // where to write the shape's diagonals; null if not wanted
};
void find_ranges(const RangesRun& run, cudaStream_t stream);

// Of keys or values in 8 bits: their scales, which a row's numbers are multiplied by.
struct KeyScales {
  const float* data = nullptr;  // (kv_heads, rows); null for all others
  int64_t stride = 0;           // elements from one head to the next
  constexpr const float* of_head(int64_t head) const {
    return data == nullptr ? nullptr : data + head * stride;
  }
};

struct AttentionRun {
  AttentionShape shape;
  const TokenRange* keys = nullptr;
  const TokenRange* queries = nullptr;
  const int32_t* rows = nullptr;  // with pages, instead of queries
  DeviceRows q, k, v, o;
  float* lse = nullptr;  // (heads, q_tokens)
  DeviceRows sinks;      // (heads); data is null if there are none
  KeyScales k_scales, v_scales;
};
// With scales k and v are rows of int8_t, whatever their format says.
void attention(const AttentionRun& run, cudaStream_t stream);

struct AttentionGradRun {
  AttentionShape shape;
  const TokenRange* keys = nullptr;
  const TokenRange* queries = nullptr;
  DeviceRows d_o, q, k, v, o;
  const float* lse = nullptr;
  float* delta = nullptr;  // (heads, q_tokens): scratch, the dot products of d_o and o
  DeviceRows dq, dk, dv;
  float* bias_sums = nullptr;  // (bias_blocks, heads, buckets of both directions) or null
};
void attention_grad(const AttentionGradRun& run, cudaStream_t stream);
// Computes only delta, which is the first step of either form of the gradient.
void find_delta(const AttentionGradRun& run, cudaStream_t stream);

// Attention and its gradient on the tensor cores. All tensors must have the same 16-bit format, or
// k and v 8 bits in pages next to others in bf16, in rows that begin at multiples of 8 bytes;
// head_dim must be a multiple of 8 and at most kMaxMatrixDims; rows of q, k, v and d_o must begin
// at multiples of 16 bytes.
void attention_matrix(const AttentionRun& run, cudaStream_t stream);
void attention_grad_matrix(const AttentionGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
