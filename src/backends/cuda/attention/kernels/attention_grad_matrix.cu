// The backward pass of attention_grad.cu in a 16-bit format on the tensor cores: the same two
// loops, with 64 rows per block; of heads above 128 the second is walked once for keys and once for
// values, whose sums no block can hold together. In the second, rows are keys and columns queries,
// so that the transposed scores leave their product in the layout of a factor for dk and dv.
#include "backends/cuda/attention/kernels/attention_matrix_tile.cuh"
#include "backends/cuda/attention/kernels/score_adjustment.cuh"
#include "backends/cuda/product/kernels/bias_sums.cuh"

namespace snug::backends::cuda {
namespace {

// A query's values for its scores. Probabilities are computed as powers of two.
struct QueryState {
  TokenRange keys;
  float lse = 0.0F;  // multiplied by log2(e)
  float delta = 0.0F;

  __device__ QueryState(const AttentionGradRun& run, int64_t head, int64_t query) {
    if (query >= run.shape.q_tokens) return;
    keys = run.keys[query];
    lse = run.lse[head * run.shape.q_tokens + query] * kLog2OfE;
    delta = run.delta[head * run.shape.q_tokens + query];
  }
};

// The states of a tile's queries, copied together with the tile; queries beyond the tensor see no
// keys.
template <int kColumns>
struct QueryStates {
  TokenRange keys[kColumns];
  float lse[kColumns];  // as written by the forward pass
  float delta[kColumns];

  __device__ void begin(const AttentionGradRun& run, int64_t head, int64_t first) {
    const auto lane = static_cast<int>(threadIdx.x % kLanes);
    const int64_t query = first + lane;
    const bool is_beyond = query >= run.shape.q_tokens;
    const int64_t value = head * run.shape.q_tokens + query;
    static_assert(kColumns <= kLanes && sizeof(QueryStates) == kColumns * kQueryStateBytes);
    if (lane >= kColumns) return;
    if (threadIdx.x < kLanes)
      begin_value_copy(&keys[lane], run.keys + query, is_beyond);
    else if (threadIdx.x < 2 * kLanes)
      begin_value_copy(&lse[lane], run.lse + value, is_beyond);
    else if (threadIdx.x < 3 * kLanes)
      begin_value_copy(&delta[lane], static_cast<const float*>(run.delta) + value, is_beyond);
  }
};

// Turns score into p and d_probability into ds. `scale` and `lse` include the factor log2(e).
struct ScaledQuery {
  float scale;
  float lse;
  float delta;
  __device__ void differentiate(bool visible, float& score, float& d_probability) const {
    score = visible ? power_of_two(score * scale - lse) : 0.0F;
    d_probability = visible ? score * (d_probability - delta) : 0.0F;
  }
  // Differentiates adjusted scores. Returns the gradient of the score; d_probability becomes the
  // gradient of the product of query and key.
  __device__ float differentiate(bool visible, const AdjustedScore& adjusted, float& score,
                                 float& d_probability) const {
    score = visible ? power_of_two(adjusted.score - lse) : 0.0F;
    const float d_score = visible ? score * (d_probability - delta) : 0.0F;
    d_probability = d_score * adjusted.slope;
    return d_score;
  }
};

template <int kDims, bool kAdjusts, bool kBiased, bool kSumsBias, typename Format>
__device__ void walk_keys(const AttentionGradRun& run) {
  constexpr int kColumns = matrix_grad_columns(kDims);
  constexpr int kTiles = kColumns / 8;
  const AttentionForm& form = run.shape.form;
  const FragmentPlace place;
  const int64_t first = int64_t{blockIdx.x} * kBlockRows;
  const int64_t head = blockIdx.y;
  const int64_t column = head * form.head_dim;
  const int64_t kv_column = head / (form.heads / form.kv_heads) * form.head_dim;
  auto* q = shared_memory<uint16_t>();
  uint16_t* d_o = q + kBlockRows * kDims;
  const TileRing<kColumns, kDims> ring{d_o + kBlockRows * kDims};
  const TileCopy<kColumns, kDims> k(run.k, form.head_dim);
  const TileCopy<kColumns, kDims> v(run.v, form.head_dim);
  const BlockRanges<> ranges(run.keys, first, run.shape.q_tokens);
  const QueryState queries[2] = {{run, head, first + place.row(0)},
                                 {run, head, first + place.row(1)}};
  const float scale_of_power = form.scale * kLog2OfE;
  const int32_t diagonals[2] = {
      diagonal_of<kBiased>(run.shape, first + place.row(0), queries[0].keys),
      diagonal_of<kBiased>(run.shape, first + place.row(1), queries[1].keys)};
  const ScoreAdjustment<kBiased, true> adjustment(form, head, kLog2OfE);
  BiasTileSums<kSumsBias> bias_sums(ring.end(), form.biases);
  float dq[kDims / 8][4];
  clear_tiles(dq);
  const auto begin_keys = [&](int stage, const SeenTile& tile) {
    if (!tile.is_end()) {
      k.begin(ring.first(stage), tile.token, kv_column, tile.tokens);
      v.begin(ring.second(stage), tile.token, kv_column, tile.tokens);
    }
    end_batch();  // ends a batch, which may be empty
  };
  TileCopy<kBlockRows, kDims>(run.q, form.head_dim).begin(q, first, column, ranges.own());
  TileCopy<kBlockRows, kDims>(run.d_o, form.head_dim).begin(d_o, first, column, ranges.own());
  SeenTile tile = ranges.first<kColumns>();
  begin_keys(0, tile);
  for (int stage = 0; !tile.is_end(); stage = 1 - stage) {
    const SeenTile next = ranges.after<kColumns>(tile);
    wait_for_batches<0>();
    // The tile has arrived, and every warp has read the one that the next copy overwrites.
    __syncthreads();
    begin_keys(1 - stage, next);
    float scores[kTiles][4];
    float d_scores[kTiles][4];
    multiply_tiles<kDims, Format>(TileRows<kDims>{q}, ring.first(stage), scores);
    multiply_tiles<kDims, Format>(TileRows<kDims>{d_o}, ring.second(stage), d_scores);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const SeenColumns seen(queries[upper].keys, tile.token + 2 * place.t);
      const ScaledQuery query{scale_of_power, queries[upper].lse, queries[upper].delta};
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
#pragma unroll
        for (int i = 2 * upper; i < 2 * upper + 2; ++i) {
          const int of_tile = 8 * j + i % 2;
          if constexpr (kAdjusts) {
            const int32_t distance = tile.token + 2 * place.t + of_tile - diagonals[upper];
            bias_sums.keep(
                place.g + 8 * upper, 2 * place.t + of_tile,
                query.differentiate(seen.contains(of_tile), adjustment.at(scores[j][i], distance),
                                    scores[j][i], d_scores[j][i]));
          } else {
            query.differentiate(seen.contains(of_tile), scores[j][i], d_scores[j][i]);
          }
        }
    }
    bias_sums.add_tile(diagonals[0] - tile.token, diagonals[1] - tile.token);
    add_weighted_tiles<kDims, Format>(d_scores, ring.first(stage), dq);
    tile = next;
  }
  finish_batches();
  const float scale[2] = {form.scale, form.scale};
  store_tiles({run.dq, first, run.shape.q_tokens, column, form.head_dim}, scale, dq);
  bias_sums.store(run.bias_sums, head, form.heads);
}

// Blocks per multiprocessor of the kernel for queries: as many as its shared memory and registers
// hold without spills. Before Hopper there is shared memory for two of 128 columns.
constexpr int query_blocks_of(int dims, bool adjusts) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr int kOf128 = 3;
#else
  constexpr int kOf128 = 2;
#endif
  if (dims <= 64) return adjusts ? 3 : 4;
  return dims > 128 ? 2 : kOf128;
}

template <int kDims, bool kAdjusts, typename Format>
__global__ void __launch_bounds__(kMatrixThreads, query_blocks_of(kDims, kAdjusts))
    query_matrix_kernel(AttentionGradRun run) {
  walk_keys<kDims, kAdjusts, false, false, Format>(run);
}
template <int kDims, bool kSumsBias, typename Format>
__global__ void __launch_bounds__(kMatrixThreads, 2) query_bias_kernel(AttentionGradRun run) {
  walk_keys<kDims, true, true, kSumsBias, Format>(run);
}

// Which gradients a kernel sums that walks queries.
enum class KeySums : uint8_t { both, keys, values };

// Adds the contribution of one tile of queries to the gradients of the block's keys. Where only
// those of values are wanted, `v` is not read.
template <int kDims, bool kAdjusts, bool kBiased, KeySums kWanted, typename Format, int kColumns>
__device__ void add_tile(const uint16_t* k, const uint16_t* v, const uint16_t* q,
                         const uint16_t* d_o, const QueryStates<kColumns>& states,
                         const AttentionShape& shape, int64_t first_query, int64_t first_key,
                         float scale, const ScoreAdjustment<kBiased, true>& adjustment,
                         float (&dk)[kDims / 8][4], float (&dv)[kDims / 8][4]) {
  constexpr int kTiles = kColumns / 8;
  const FragmentPlace place;
  float scores[kTiles][4];
  float d_scores[kTiles][4];
  multiply_tiles<kDims, Format>(TileRows<kDims>{k}, q, scores);
  if constexpr (kWanted == KeySums::values)
    clear_tiles(d_scores);
  else
    multiply_tiles<kDims, Format>(TileRows<kDims>{v}, d_o, d_scores);
  const auto key = static_cast<int32_t>(first_key) + place.row(0);
#pragma unroll
  for (int j = 0; j < kTiles; ++j)
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const int column = 8 * j + 2 * place.t + odd;
      const SeenColumns seen(states.keys[column], key);
      const ScaledQuery query{scale, states.lse[column] * kLog2OfE, states.delta[column]};
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        float& score = scores[j][2 * upper + odd];
        float& d_score = d_scores[j][2 * upper + odd];
        if constexpr (kAdjusts) {
          const int32_t distance =
              key + 8 * upper -
              diagonal_of<kBiased>(shape, first_query + column, states.keys[column]);
          query.differentiate(seen.contains(8 * upper), adjustment.at(score, distance), score,
                              d_score);
        } else {
          query.differentiate(seen.contains(8 * upper), score, d_score);
        }
      }
    }
  if constexpr (kWanted != KeySums::values) add_weighted_tiles<kDims, Format>(d_scores, q, dk);
  if constexpr (kWanted != KeySums::keys) add_weighted_tiles<kDims, Format>(scores, d_o, dv);
}

// Goes through the tiles of queries, for one head after another that reads the key head.
template <int kColumns>
struct QueryWalk {
  const BlockRanges<>& ranges;
  int last_head;  // one past the last head
  int head;
  SeenTile tile;

  __device__ bool is_end() const { return tile.is_end(); }
  __device__ void step() {
    tile = ranges.template after<kColumns>(tile);
    if (tile.is_end() && ++head < last_head) tile = ranges.template first<kColumns>();
  }
};

template <int kDims, bool kAdjusts, bool kBiased, KeySums kWanted, typename Format>
__device__ void walk_queries(const AttentionGradRun& run) {
  constexpr int kColumns = matrix_grad_columns(kDims);
  constexpr bool kReadsValues = kWanted != KeySums::values;
  const AttentionForm& form = run.shape.form;
  const int64_t first = int64_t{blockIdx.x} * kBlockRows;
  const auto kv_head = static_cast<int>(blockIdx.y);
  const int group = form.heads / form.kv_heads;
  const int column = kv_head * form.head_dim;
  auto* k = shared_memory<uint16_t>();
  uint16_t* v = k + kBlockRows * kDims;
  const TileRing<kColumns, kDims> ring{kReadsValues ? v + kBlockRows * kDims : v};
  auto* states = reinterpret_cast<QueryStates<kColumns>*>(ring.end());
  const TileCopy<kColumns, kDims> q(run.q, form.head_dim);
  const TileCopy<kColumns, kDims> d_o(run.d_o, form.head_dim);
  const BlockRanges<> ranges(run.queries, first, run.shape.k_tokens);
  float dk[kDims / 8][4];
  float dv[kDims / 8][4];
  clear_tiles(dk);
  clear_tiles(dv);
  const auto begin_queries = [&](int stage, const QueryWalk<kColumns>& walk) {
    if (!walk.is_end()) {
      const SeenTile& tile = walk.tile;
      q.begin(ring.first(stage), tile.token, walk.head * form.head_dim, tile.tokens);
      d_o.begin(ring.second(stage), tile.token, walk.head * form.head_dim, tile.tokens);
      states[stage].begin(run, walk.head, tile.token);
    }
    end_batch();  // ends a batch, which may be empty
  };
  TileCopy<kBlockRows, kDims>(run.k, form.head_dim).begin(k, first, column, ranges.own());
  if constexpr (kReadsValues)
    TileCopy<kBlockRows, kDims>(run.v, form.head_dim).begin(v, first, column, ranges.own());
  QueryWalk<kColumns> walk{ranges, (kv_head + 1) * group, kv_head * group,
                           ranges.first<kColumns>()};
  begin_queries(0, walk);
  for (int stage = 0; !walk.is_end(); stage = 1 - stage) {
    const ScoreAdjustment<kBiased, true> adjustment(form, walk.head,
                                                    kLog2OfE);  // for this tile's head
    const int32_t first_query = walk.tile.token;
    walk.step();
    wait_for_batches<0>();
    // The tile has arrived, and every warp has read the one that the next copy overwrites.
    __syncthreads();
    begin_queries(1 - stage, walk);
    add_tile<kDims, kAdjusts, kBiased, kWanted, Format>(
        k, v, ring.first(stage), ring.second(stage), states[stage], run.shape, first_query, first,
        form.scale * kLog2OfE, adjustment, dk, dv);
  }
  finish_batches();
  const float scale[2] = {form.scale, form.scale};
  const float one[2] = {1.0F, 1.0F};
  if constexpr (kWanted != KeySums::values)
    store_tiles({run.dk, first, run.shape.k_tokens, column, form.head_dim}, scale, dk);
  if constexpr (kWanted != KeySums::keys)
    store_tiles({run.dv, first, run.shape.k_tokens, column, form.head_dim}, one, dv);
}

template <int kDims, bool kAdjusts, typename Format>
__global__ void __launch_bounds__(kMatrixThreads) key_matrix_kernel(AttentionGradRun run) {
  constexpr KeySums kWanted = sums_values_apart(kDims) ? KeySums::keys : KeySums::both;
  walk_queries<kDims, kAdjusts, false, kWanted, Format>(run);
}
template <int kDims, bool kAdjusts, typename Format>
__global__ void __launch_bounds__(kMatrixThreads) value_matrix_kernel(AttentionGradRun run) {
  walk_queries<kDims, kAdjusts, false, KeySums::values, Format>(run);
}
template <int kDims, typename Format>
__global__ void __launch_bounds__(kMatrixThreads) key_bias_kernel(AttentionGradRun run) {
  walk_queries<kDims, true, true, KeySums::both, Format>(run);
}

using GradientKernel = void (*)(AttentionGradRun);

template <int kDims, typename Format>
GradientKernel query_kernel_of(const AttentionGradRun& run) {
  if constexpr (kDims <= kMaxBiasedMatrixDims) {
    if (run.bias_sums != nullptr) return query_bias_kernel<kDims, true, Format>;
    if (is_biased(run.shape.form)) return query_bias_kernel<kDims, false, Format>;
  }
  if (are_adjusted(run.shape.form)) return query_matrix_kernel<kDims, true, Format>;
  return query_matrix_kernel<kDims, false, Format>;
}

template <int kDims, typename Format>
GradientKernel key_kernel_of(const AttentionGradRun& run) {
  if constexpr (kDims <= kMaxBiasedMatrixDims)
    if (is_biased(run.shape.form)) return key_bias_kernel<kDims, Format>;
  if (are_adjusted(run.shape.form)) return key_matrix_kernel<kDims, true, Format>;
  return key_matrix_kernel<kDims, false, Format>;
}

template <int kDims, typename Format>
void launch_matrix(const AttentionGradRun& run, cudaStream_t stream) {
  const AttentionShape& shape = run.shape;
  const int32_t shared_bytes = attention_grad_matrix_shared_bytes(kDims);
  const int64_t sums =
      run.bias_sums != nullptr ? bias_matrix_shared_bytes(shape.form.biases.reach) : 0;
  if (shape.q_tokens > 0)
    launch(query_kernel_of<kDims, Format>(run),
           matrix_tiles_of(shape.q_tokens, shape.form.heads,
                           shared_bytes + static_cast<int32_t>(sums)),
           stream, run);
  if (shape.k_tokens == 0) return;
  launch(key_kernel_of<kDims, Format>(run),
         matrix_tiles_of(shape.k_tokens, shape.form.kv_heads, shared_bytes), stream, run);
  if constexpr (sums_values_apart(kDims))
    launch(are_adjusted(shape.form) ? value_matrix_kernel<kDims, true, Format>
                                    : value_matrix_kernel<kDims, false, Format>,
           matrix_tiles_of(shape.k_tokens, shape.form.kv_heads,
                           attention_values_matrix_shared_bytes(kDims)),
           stream, run);
}

template <typename Format>
void launch_dims(const AttentionGradRun& run, cudaStream_t stream) {
  with_matrix_dims(run.shape.form.head_dim,
                   [&](auto dims) { launch_matrix<decltype(dims)::value, Format>(run, stream); });
}

}  // namespace

void attention_grad_matrix(const AttentionGradRun& run, cudaStream_t stream) {
  find_delta(run, stream);
  if (run.q.format == ElementFormat::f16)
    launch_dims<F16>(run, stream);
  else
    launch_dims<Bf16>(run, stream);
}

}  // namespace snug::backends::cuda
