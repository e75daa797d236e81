// The backward pass: with p = exp(scale q k - lse), ds = p (do v - do o),
//   dq = scale sum over keys of ds k,  dk = scale sum over queries of ds q,  dv = sum over queries
//   of p do.
// Scores are recomputed from q, k and lse. One kernel keeps queries and goes through keys; another
// keeps keys of a key head and goes through the queries of all heads that read it: no sum is shared
// between blocks. The first kernel has the gradient of each score, whose sums by distance give the
// gradient of a bias (bias_sums.cuh).
#include "backends/cuda/attention/kernels/attention_tile.cuh"
#include "backends/cuda/attention/kernels/score_adjustment.cuh"
#include "backends/cuda/product/kernels/bias_sums.cuh"

namespace snug::backends::cuda {
namespace {

// One warp per token and head.
__global__ void delta_kernel(AttentionGradRun run) {
  const AttentionForm& form = run.shape.form;
  const int64_t token = int64_t{blockIdx.x} * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  const int64_t head = blockIdx.y;
  if (token >= run.shape.q_tokens) return;
  float sum = 0.0F;
  for (int d = lane_of_thread(); d < form.head_dim; d += kLanes) {
    const int64_t column = head * form.head_dim + d;
    sum += load_one(run.d_o, token * run.d_o.stride + column) *
           load_one(run.o, token * run.o.stride + column);
  }
  sum = warp_sum(sum);
  if (lane_of_thread() == 0) run.delta[head * run.shape.q_tokens + token] = sum;
}

// p and ds of one query and key, and the gradient of their product, which equals ds without a
// softcap.
struct Weights {
  float probability;
  float d_score;
  float d_product;
};

__device__ Weights weights_of(bool visible, const AdjustedScore& score, float d_probability,
                              float lse, float delta) {
  if (!visible) return {0.0F, 0.0F, 0.0F};
  const float probability = expf(score.score - lse);
  const float d_score = probability * (d_probability - delta);
  return {probability, d_score, d_score * score.slope};
}

// The score for a product of query and key, with `distance` as in ScoreAdjustment.
template <bool kAdjusts, bool kBiased>
__device__ AdjustedScore score_of(const ScoreAdjustment<kBiased>& adjustment, float scale,
                                  float product, int64_t distance) {
  if constexpr (kAdjusts)
    return adjustment.at(product, distance);
  else
    return {product * scale, 1.0F};
}

// The block's own rows are queries or keys; a tile of the other side has tile_rows(kColumns) rows.
// `weights` has a number for each pair of rows.
template <int kColumns, bool kOwnsQueries>
struct Tiles {
  static constexpr int kOwn = own_rows(kColumns);
  static constexpr int kOther = tile_rows(kColumns);
  static constexpr int kQueries = kOwnsQueries ? kOwn : kOther;
  static constexpr int kKeys = kOwnsQueries ? kOther : kOwn;
  float *q, *d_o, *k, *v, *weights, *end;

  __device__ Tiles() {
    q = shared_memory<float>();
    d_o = q + tile_floats(kQueries, kColumns);
    k = d_o + tile_floats(kQueries, kColumns);
    v = k + tile_floats(kKeys, kColumns);
    weights = v + tile_floats(kKeys, kColumns);
    end = weights + kOwn * kLanes;
  }

  __device__ void load_queries(const AttentionGradRun& run, int64_t first, int64_t head) const {
    const int head_dim = run.shape.form.head_dim;
    const int64_t rows = run.shape.q_tokens;
    load_tile<kQueries, kColumns>(q, {run.q, first, rows, run.keys, head * head_dim, head_dim});
    load_tile<kQueries, kColumns>(d_o, {run.d_o, first, rows, run.keys, head * head_dim, head_dim});
  }

  __device__ void load_keys(const AttentionGradRun& run, int64_t first, int64_t kv_head) const {
    const int head_dim = run.shape.form.head_dim;
    const int64_t rows = run.shape.k_tokens;
    load_tile<kKeys, kColumns>(k, {run.k, first, rows, run.queries, kv_head * head_dim, head_dim});
    load_tile<kKeys, kColumns>(v, {run.v, first, rows, run.queries, kv_head * head_dim, head_dim});
  }
};

template <int kRows, int kColumns>
__device__ void clear(float (&sums)[kRows][kColumns]) {
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) sums[r][c] = 0.0F;
}

// The value of a token in one head, 0 beyond the tensor.
__device__ float value_at(const float* values, const AttentionShape& shape, int64_t head,
                          int64_t token) {
  return token < shape.q_tokens ? values[head * shape.q_tokens + token] : 0.0F;
}

template <int kColumns, bool kAdjusts, bool kBiased, bool kSumsBias>
__device__ void walk_keys(const AttentionGradRun& run) {
  constexpr int kWarpRows = warp_rows(kColumns);
  const AttentionForm& form = run.shape.form;
  const Tiles<kColumns, true> tiles;
  const int64_t first = int64_t{blockIdx.x} * tiles.kOwn;
  const int64_t head = blockIdx.y;
  const int64_t kv_head = head / (form.heads / form.kv_heads);
  const TokenRange mine = range_of_lane<own_rows(kColumns)>(run.keys, first, run.shape.q_tokens);
  const TokenRange all = union_of_lanes(mine);
  tiles.load_queries(run, first, head);
  const ScoreAdjustment<kBiased> adjustment(form, head, 1.0F);
  const int32_t my_diagonal = diagonal_of<kBiased>(run.shape, first + lane_of_thread(), mine);
  BiasSums<kSumsBias> bias_sums(tiles.end, form.biases);
  float dq[kWarpRows][kColumns];
  clear(dq);
  for (int64_t key = all.begin; key < all.end; key += tile_rows(kColumns)) {
    if (!any_meets<kColumns>(mine, key)) continue;
    __syncthreads();
    tiles.load_keys(run, key, kv_head);
    __syncthreads();
    float scores[kWarpRows];
    float d_probabilities[kWarpRows];
    multiply_rows<kColumns>(tiles.q, tiles.k, form.head_dim, scores);
    multiply_rows<kColumns>(tiles.d_o, tiles.v, form.head_dim, d_probabilities);
    for (int r = 0; r < kWarpRows; ++r) {
      const int row = first_row_of_warp<kColumns>() + r;
      const TokenRange keys{__shfl_sync(kWholeWarp, mine.begin, row),
                            __shfl_sync(kWholeWarp, mine.end, row)};
      const int32_t diagonal = kAdjusts ? __shfl_sync(kWholeWarp, my_diagonal, row) : 0;
      const int64_t lane_key = key + lane_of_thread();
      const Weights weights = weights_of(
          has_row_of_lane<kColumns>(keys, key),
          score_of<kAdjusts, kBiased>(adjustment, form.scale, scores[r], lane_key - diagonal),
          d_probabilities[r], value_at(run.lse, run.shape, head, first + row),
          value_at(run.delta, run.shape, head, first + row));
      tiles.weights[row * kLanes + lane_of_thread()] = weights.d_product;
      bias_sums.add(diagonal - static_cast<int32_t>(key), weights.d_score);
    }
    __syncwarp();
    add_weighted_rows<kColumns>(tiles.weights, tiles.k, dq);
  }
  float scale[kWarpRows];
  for (float& value : scale) value = form.scale;
  store_rows<kColumns>(
      {run.dq, first, run.shape.q_tokens, run.keys, head * form.head_dim, form.head_dim}, scale,
      dq);
  bias_sums.store(run.bias_sums, head, form.heads);
}

template <int kColumns, bool kAdjusts>
__global__ void query_gradient_kernel(AttentionGradRun run) {
  walk_keys<kColumns, kAdjusts, false, false>(run);
}
template <int kColumns, bool kSumsBias>
__global__ void query_bias_kernel(AttentionGradRun run) {
  walk_keys<kColumns, true, true, kSumsBias>(run);
}

// Adds the contribution of a tile of queries, starting at `first`, to the gradients of the block's
// keys.
template <int kColumns, bool kAdjusts, bool kBiased>
__device__ void add_queries(const AttentionGradRun& run, const Tiles<kColumns, false>& tiles,
                            int64_t first_key, int64_t first, int64_t head,
                            float (&dk)[warp_rows(kColumns)][kColumns],
                            float (&dv)[warp_rows(kColumns)][kColumns]) {
  constexpr int kWarpRows = warp_rows(kColumns);
  const AttentionForm& form = run.shape.form;
  const int64_t query = first + lane_of_thread();
  const TokenRange keys = range_of_lane<tile_rows(kColumns)>(run.keys, first, run.shape.q_tokens);
  const float lse = value_at(run.lse, run.shape, head, query);
  const float delta = value_at(run.delta, run.shape, head, query);
  const int32_t diagonal = diagonal_of<kBiased>(run.shape, query, keys);
  const ScoreAdjustment<kBiased> adjustment(form, head, 1.0F);
  float scores[kWarpRows];
  float d_probabilities[kWarpRows];
  multiply_rows<kColumns>(tiles.k, tiles.q, form.head_dim, scores);
  multiply_rows<kColumns>(tiles.v, tiles.d_o, form.head_dim, d_probabilities);
  for (int r = 0; r < kWarpRows; ++r) {
    const int row = first_row_of_warp<kColumns>() + r;
    const int64_t key = first_key + row;
    const AdjustedScore score =
        score_of<kAdjusts, kBiased>(adjustment, form.scale, scores[r], key - diagonal);
    const Weights weights = weights_of(is_in(keys, key), score, d_probabilities[r], lse, delta);
    scores[r] = weights.probability;
    tiles.weights[row * kLanes + lane_of_thread()] = weights.d_product;
  }
  __syncwarp();
  add_weighted_rows<kColumns>(tiles.weights, tiles.q, dk);
  __syncwarp();
  for (int r = 0; r < kWarpRows; ++r)
    tiles.weights[(first_row_of_warp<kColumns>() + r) * kLanes + lane_of_thread()] = scores[r];
  __syncwarp();
  add_weighted_rows<kColumns>(tiles.weights, tiles.d_o, dv);
}

template <int kColumns, bool kAdjusts, bool kBiased>
__device__ void walk_queries(const AttentionGradRun& run) {
  constexpr int kWarpRows = warp_rows(kColumns);
  const AttentionForm& form = run.shape.form;
  const Tiles<kColumns, false> tiles;
  const int64_t first = int64_t{blockIdx.x} * tiles.kOwn;
  const int64_t kv_head = blockIdx.y;
  const int64_t group = form.heads / form.kv_heads;
  const TokenRange mine = range_of_lane<own_rows(kColumns)>(run.queries, first, run.shape.k_tokens);
  const TokenRange all = union_of_lanes(mine);
  tiles.load_keys(run, first, kv_head);
  float dk[kWarpRows][kColumns];
  float dv[kWarpRows][kColumns];
  clear(dk);
  clear(dv);
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
    for (int64_t query = all.begin; query < all.end; query += tile_rows(kColumns)) {
      if (!any_meets<kColumns>(mine, query)) continue;
      __syncthreads();
      tiles.load_queries(run, query, head);
      __syncthreads();
      add_queries<kColumns, kAdjusts, kBiased>(run, tiles, first, query, head, dk, dv);
    }
  float scale[kWarpRows];
  float one[kWarpRows];
  for (int r = 0; r < kWarpRows; ++r) {
    scale[r] = form.scale;
    one[r] = 1.0F;
  }
  const int64_t column = kv_head * form.head_dim;
  store_rows<kColumns>({run.dk, first, run.shape.k_tokens, run.queries, column, form.head_dim},
                       scale, dk);
  store_rows<kColumns>({run.dv, first, run.shape.k_tokens, run.queries, column, form.head_dim}, one,
                       dv);
}

template <int kColumns, bool kAdjusts>
__global__ void key_gradient_kernel(AttentionGradRun run) {
  walk_queries<kColumns, kAdjusts, false>(run);
}
template <int kColumns>
__global__ void key_bias_kernel(AttentionGradRun run) {
  walk_queries<kColumns, true, true>(run);
}

using GradientKernel = void (*)(AttentionGradRun);

template <int kColumns>
GradientKernel query_kernel_of(const AttentionGradRun& run) {
  if (run.bias_sums != nullptr) return query_bias_kernel<kColumns, true>;
  if (is_biased(run.shape.form)) return query_bias_kernel<kColumns, false>;
  if (are_adjusted(run.shape.form)) return query_gradient_kernel<kColumns, true>;
  return query_gradient_kernel<kColumns, false>;
}

template <int kColumns>
GradientKernel key_kernel_of(const AttentionGradRun& run) {
  if (is_biased(run.shape.form)) return key_bias_kernel<kColumns>;
  if (are_adjusted(run.shape.form)) return key_gradient_kernel<kColumns, true>;
  return key_gradient_kernel<kColumns, false>;
}

template <int kColumns>
struct Backward {
  static void launch(const AttentionGradRun& run, cudaStream_t stream) {
    const AttentionForm& form = run.shape.form;
    const int32_t shared_bytes = attention_grad_shared_bytes(form.head_dim);
    const int64_t sums = run.bias_sums != nullptr ? bias_shared_bytes(form.biases.reach) : 0;
    if (run.shape.q_tokens > 0)
      cuda::launch(query_kernel_of<kColumns>(run),
                   tiles_of<kColumns>(run.shape.q_tokens, form.heads,
                                      shared_bytes + static_cast<int32_t>(sums)),
                   stream, run);
    if (run.shape.k_tokens > 0)
      cuda::launch(key_kernel_of<kColumns>(run),
                   tiles_of<kColumns>(run.shape.k_tokens, form.kv_heads, shared_bytes), stream,
                   run);
  }
};

}  // namespace

void find_delta(const AttentionGradRun& run, cudaStream_t stream) {
  if (run.shape.q_tokens == 0) return;
  constexpr uint32_t kWarps = 8;
  LaunchShape shape;
  shape.block.x = kWarps * kLanes;
  shape.grid.x = static_cast<uint32_t>(ceil_div(run.shape.q_tokens, kWarps));
  shape.grid.y = static_cast<uint32_t>(run.shape.form.heads);
  launch(delta_kernel, shape, stream, run);
}

void attention_grad(const AttentionGradRun& run, cudaStream_t stream) {
  find_delta(run, stream);
  with_lane_columns<Backward>(run.shape.form.head_dim, run, stream);
}

}  // namespace snug::backends::cuda
