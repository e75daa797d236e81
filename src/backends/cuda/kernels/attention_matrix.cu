// The forward pass of attention.cu for bf16 on the tensor cores: the same walk, 64 queries per
// block.
#include "backends/cuda/kernels/attention_matrix_tile.cuh"

namespace snug::backends::cuda {
namespace {

constexpr int kKeys = kMatrixKeys;  // of a tile
constexpr int kTiles = kKeys / 8;

// The four lanes that share rows g and g + 8 agree.
__device__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 2));
}
__device__ float row_sum(float value) {
  value += __shfl_xor_sync(kWholeWarp, value, 1);
  return value + __shfl_xor_sync(kWholeWarp, value, 2);
}

// Running maximum and sum of rows g and g + 8; a lane's sum is of its own columns.
struct SoftmaxState {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};
};

// Turns scores of the tile from `key` on into weights beneath each row's new maximum; factor: what
// its earlier sums are worth.
__device__ void weigh(float (&scores)[kTiles][4], const TokenRange (&keys)[2], int64_t key,
                      float scale, SoftmaxState& state, float (&factor)[2]) {
  const LanePlace place;
  for (int upper = 0; upper < 2; ++upper) {
    float largest = -INFINITY;
    for (int j = 0; j < kTiles; ++j)
      for (int i = 2 * upper; i < 2 * upper + 2; ++i) {
        const bool visible = contains(keys[upper], key + 8 * j + 2 * place.t + i % 2);
        scores[j][i] = visible ? scores[j][i] * scale : -INFINITY;
        largest = fmaxf(largest, scores[j][i]);
      }
    largest = fmaxf(state.largest[upper], row_max(largest));
    const bool seen = largest > -INFINITY;
    factor[upper] = seen ? expf(state.largest[upper] - largest) : 1.0F;
    state.sum[upper] *= factor[upper];
    for (int j = 0; j < kTiles; ++j)
      for (int i = 2 * upper; i < 2 * upper + 2; ++i) {
        scores[j][i] = seen ? expf(scores[j][i] - largest) : 0.0F;
        state.sum[upper] += scores[j][i];
      }
    state.largest[upper] = largest;
  }
}

template <int kDims>
__device__ void begin_keys(const AttentionRun& run, const TileRing<kKeys, kDims>& ring, int stage,
                           int64_t key, int64_t kv_column) {
  const int head_dim = run.shape.form.head_dim;
  begin_tile<kKeys, kDims>(ring.first(stage),
                           {run.k, key, run.shape.k_tokens, run.queries, kv_column, head_dim});
  begin_tile<kKeys, kDims>(ring.second(stage),
                           {run.v, key, run.shape.k_tokens, run.queries, kv_column, head_dim});
  end_batch();
}

template <int kDims>
__global__ void __launch_bounds__(kMatrixThreads) attention_matrix_kernel(AttentionRun run) {
  const AttentionForm& form = run.shape.form;
  const LanePlace place;
  const int64_t first = int64_t{blockIdx.x} * kBlockRows;
  const int64_t head = blockIdx.y;
  const int64_t q_tokens = run.shape.q_tokens;
  const int64_t kv_column = head / (form.heads / form.kv_heads) * form.head_dim;
  auto* q_tile = shared_memory<uint16_t>();
  const TileRing<kKeys, kDims> ring{q_tile + kBlockRows * matrix_stride(kDims)};
  const MatrixSource q{run.q, first, q_tokens, run.keys, head * form.head_dim, form.head_dim};
  const BlockRanges ranges(run.keys, first, q_tokens);
  const TokenRange keys[2] = {range_at(run.keys, first + place.row(0), q_tokens),
                              range_at(run.keys, first + place.row(1), q_tokens)};
  SoftmaxState state;
  float output[kDims / 8][4];
  clear_tiles(output);
  int64_t key = ranges.next(ranges.begin(), kKeys);
  begin_tile<kBlockRows, kDims>(q_tile, q);
  if (key < ranges.end()) begin_keys(run, ring, 0, key, kv_column);
  for (int stage = 0; key < ranges.end(); stage = 1 - stage) {
    const int64_t next = ranges.next(key + kKeys, kKeys);
    if (next < ranges.end())
      begin_keys(run, ring, 1 - stage, next, kv_column);
    else
      end_batch();  // an empty one, so that the count below holds
    wait_for_batches<1>();
    __syncthreads();
    float scores[kTiles][4];
    multiply_tiles<kDims>(q_tile, ring.first(stage), scores);
    float factor[2];
    weigh(scores, keys, key, form.scale, state, factor);
    for (int j = 0; j < kDims / 8; ++j)
      for (int i = 0; i < 4; ++i) output[j][i] *= factor[i / 2];
    add_weighted_tiles<kDims>(scores, ring.second(stage), output);
    __syncthreads();  // the stage is read before it is filled again
    key = next;
  }
  finish_batches();
  float scale[2];
  for (int upper = 0; upper < 2; ++upper) {
    const float sum = row_sum(state.sum[upper]);
    const int64_t row = first + place.row(upper);
    scale[upper] = sum > 0.0F ? 1.0F / sum : 0.0F;
    if (place.t == 0 && row < q_tokens)
      run.lse[head * q_tokens + row] = sum > 0.0F ? state.largest[upper] + logf(sum) : 0.0F;
  }
  store_tiles<kDims>({run.o, first, q_tokens, run.keys, head * form.head_dim, form.head_dim}, scale,
                     output);
}

template <int kDims>
void launch_matrix(const AttentionRun& run, cudaStream_t stream) {
  const AttentionShape& shape = run.shape;
  launch(attention_matrix_kernel<kDims>,
         matrix_tiles_of(shape.q_tokens, shape.form.heads, matrix_shared_bytes(1, kKeys, kDims)),
         stream, run);
}

}  // namespace

void attention_matrix(const AttentionRun& run, cudaStream_t stream) {
  if (run.shape.q_tokens == 0) return;
  if (matrix_dims(run.shape.form.head_dim) == 64)
    launch_matrix<64>(run, stream);
  else
    launch_matrix<128>(run, stream);
}

}  // namespace snug::backends::cuda
