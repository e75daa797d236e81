// The forward pass as in FlashAttention (Dao et al. 2022): a block keeps own_rows() queries of one
// head and goes through the keys that they see, tile by tile. Each row has the maximum of the tiles
// so far; its sums are rescaled when the maximum grows.
#include "backends/cuda/attention/kernels/attention.h"

#include <algorithm>

#include "backends/cuda/attention/kernels/attention_ranges.cuh"
#include "backends/cuda/attention/kernels/attention_tile.cuh"
#include "backends/cuda/attention/kernels/score_adjustment.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/row_end.cuh"

namespace snug::backends::cuda {
namespace {

// Finds the ranges for the queries (side 0) or for the keys.
struct FindRanges {
  RangesRun run;
  __device__ void operator()(int64_t side, int64_t token) const {
    if (side == 0 && token < run.shape.q_tokens) {
      run.keys[token] = keys_of(run, token);
      if (run.diagonals != nullptr) run.diagonals[token] = diagonal_of(run, token);
    }
    if (side == 0 || token >= run.shape.k_tokens) return;
    const TokenRange queries = queries_of(run, token);
    if (run.rows == nullptr)
      run.queries[token] = queries;
    else
      run.rows[token] =
          queries.begin < queries.end ? static_cast<int32_t>(KeyRows(run, token).row(token)) : -1;
  }
};

// Turns the scores of one row into weights relative to its new maximum; returns the factor for its
// earlier sums.
__device__ float rescale(float score, float& largest_so_far, float& weight) {
  const float largest_now = fmaxf(largest_so_far, warp_max(score));
  if (largest_now == -INFINITY) {
    weight = 0.0F;
    return 1.0F;
  }
  const float factor = expf(largest_so_far - largest_now);
  weight = expf(score - largest_now);
  largest_so_far = largest_now;
  return factor;
}

// One lane's part of the running sums of the warp's rows.
template <int kColumns>
struct RowState {
  float largest[warp_rows(kColumns)];
  float sum[warp_rows(kColumns)];  // sums over this lane's keys
  float output[warp_rows(kColumns)][kColumns];
};

template <int kColumns, bool kAdjusts, bool kBiased>
__device__ void attend(const AttentionRun& run) {
  constexpr int kRows = own_rows(kColumns);
  constexpr int kWarpRows = warp_rows(kColumns);
  constexpr int kTileRows = tile_rows(kColumns);
  const AttentionForm& form = run.shape.form;
  const int64_t first = int64_t{blockIdx.x} * kRows;
  const int64_t head = blockIdx.y;
  const int64_t kv_head = head / (form.heads / form.kv_heads);
  const int64_t kv_column = kv_head * form.head_dim;
  const float* k_scales = run.k_scales.of_head(kv_head);
  const float* v_scales = run.v_scales.of_head(kv_head);
  auto* q_tile = shared_memory<float>();
  float* k_tile = q_tile + tile_floats(kRows, kColumns);
  float* v_tile = k_tile + tile_floats(kTileRows, kColumns);
  float* weights = v_tile + tile_floats(kTileRows, kColumns);
  const TokenRange mine = range_of_lane<kRows>(run.keys, first, run.shape.q_tokens);
  const TokenRange all = union_of_lanes(mine);
  const int64_t head_column = head * form.head_dim;
  load_tile<kRows, kColumns>(
      q_tile, {run.q, first, run.shape.q_tokens, run.keys, head_column, form.head_dim});
  const ScoreAdjustment<kBiased> adjustment(form, head, 1.0F);
  const int32_t my_diagonal = diagonal_of<kBiased>(run.shape, first + lane_of_thread(), mine);
  RowState<kColumns> state;
  for (int r = 0; r < kWarpRows; ++r) {
    state.largest[r] = -INFINITY;
    state.sum[r] = 0.0F;
    for (int c = 0; c < kColumns; ++c) state.output[r][c] = 0.0F;
  }
  const int64_t first_key = run.rows == nullptr ? all.begin : all.begin / kTileRows * kTileRows;
  for (int64_t key = first_key; key < all.end; key += kTileRows) {
    if (!any_meets<kColumns>(mine, key)) continue;
    __syncthreads();
    load_tile<kTileRows, kColumns>(k_tile, {run.k, key, run.shape.k_tokens, run.queries, kv_column,
                                            form.head_dim, run.rows, k_scales});
    load_tile<kTileRows, kColumns>(v_tile, {run.v, key, run.shape.k_tokens, run.queries, kv_column,
                                            form.head_dim, run.rows, v_scales});
    __syncthreads();
    float scores[kWarpRows];
    multiply_rows<kColumns>(q_tile, k_tile, form.head_dim, scores);
    for (int r = 0; r < kWarpRows; ++r) {
      const int row = first_row_of_warp<kColumns>() + r;
      const TokenRange keys{__shfl_sync(kWholeWarp, mine.begin, row),
                            __shfl_sync(kWholeWarp, mine.end, row)};
      const int64_t lane_key = key + lane_of_thread();
      const bool visible = has_row_of_lane<kColumns>(keys, key);
      float score = 0.0F;
      if constexpr (kAdjusts) {
        const int32_t diagonal = __shfl_sync(kWholeWarp, my_diagonal, row);
        score = adjustment.at(scores[r], lane_key - diagonal).score;
      } else {
        score = scores[r] * form.scale;
      }
      float weight = 0.0F;
      const float factor = rescale(visible ? score : -INFINITY, state.largest[r], weight);
      state.sum[r] = state.sum[r] * factor + weight;
      for (int c = 0; c < kColumns; ++c) state.output[r][c] *= factor;
      weights[row * kLanes + lane_of_thread()] = weight;
    }
    __syncwarp();
    add_weighted_rows<kColumns>(weights, v_tile, state.output);
  }
  float scale[kWarpRows];
  for (int r = 0; r < kWarpRows; ++r) {
    const float sum = warp_sum(state.sum[r]);
    const int64_t row = first + first_row_of_warp<kColumns>() + r;
    const RowEnd end = end_of_row(run.sinks, head, state.largest[r], sum);
    scale[r] = end.scale;
    if (lane_of_thread() == 0 && row < run.shape.q_tokens)
      run.lse[head * run.shape.q_tokens + row] = end.lse;
  }
  store_rows<kColumns>({run.o, first, run.shape.q_tokens, run.keys, head_column, form.head_dim},
                       scale, state.output);
}

template <int kColumns, bool kAdjusts>
__global__ void attention_kernel(AttentionRun run) {
  attend<kColumns, kAdjusts, false>(run);
}
template <int kColumns>
__global__ void attention_bias_kernel(AttentionRun run) {
  attend<kColumns, true, true>(run);
}

template <int kColumns>
struct Forward {
  static void launch(const AttentionRun& run, cudaStream_t stream) {
    const AttentionForm& form = run.shape.form;
    cuda::launch(
        is_biased(form)      ? attention_bias_kernel<kColumns>
        : are_adjusted(form) ? attention_kernel<kColumns, true>
                             : attention_kernel<kColumns, false>,
        tiles_of<kColumns>(run.shape.q_tokens, form.heads, attention_shared_bytes(form.head_dim)),
        stream, run);
  }
};

}  // namespace

void find_ranges(const RangesRun& run, cudaStream_t stream) {
  over_items(FindRanges{run}, 2, std::max(run.shape.q_tokens, run.shape.k_tokens), stream);
}

void attention(const AttentionRun& run, cudaStream_t stream) {
  if (run.shape.q_tokens == 0) return;
  with_lane_columns<Forward>(run.shape.form.head_dim, run, stream);
}

}  // namespace snug::backends::cuda
