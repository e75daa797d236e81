// The backward pass of attention_grad.cu for bf16 on the tensor cores: the same two walks, 64 rows
// a block. In the second, rows are keys and columns queries, so that transposed scores are the
// factor of dk and dv as they leave the product.
#include "backends/cuda/kernels/attention_matrix_tile.cuh"

namespace snug::backends::cuda {
namespace {

constexpr int kColumns = kMatrixGradColumns;  // of a tile of the other side
constexpr int kTiles = kColumns / 8;

template <int kDims>
using Ring = TileRing<kColumns, kDims>;

// Rows of queries are q and d_o, rows of keys k and v.
template <int kRows, int kDims>
__device__ void begin_queries(const AttentionGradRun& run, uint16_t* q, uint16_t* d_o,
                              int64_t first, int64_t head) {
  const int head_dim = run.shape.form.head_dim;
  const int64_t rows = run.shape.q_tokens;
  begin_tile<kRows, kDims>(q, {run.q, first, rows, run.keys, head * head_dim, head_dim});
  begin_tile<kRows, kDims>(d_o, {run.d_o, first, rows, run.keys, head * head_dim, head_dim});
  end_batch();
}

template <int kRows, int kDims>
__device__ void begin_keys(const AttentionGradRun& run, uint16_t* k, uint16_t* v, int64_t first,
                           int64_t kv_head) {
  const int head_dim = run.shape.form.head_dim;
  const int64_t rows = run.shape.k_tokens;
  begin_tile<kRows, kDims>(k, {run.k, first, rows, run.queries, kv_head * head_dim, head_dim});
  begin_tile<kRows, kDims>(v, {run.v, first, rows, run.queries, kv_head * head_dim, head_dim});
  end_batch();
}

// What a query gives to its scores.
struct QueryState {
  TokenRange keys;
  float lse = 0.0F;
  float delta = 0.0F;

  __device__ QueryState(const AttentionGradRun& run, int64_t head, int64_t query) {
    if (query >= run.shape.q_tokens) return;
    keys = run.keys[query];
    lse = run.lse[head * run.shape.q_tokens + query];
    delta = run.delta[head * run.shape.q_tokens + query];
  }
};

// score becomes p, d_probability becomes ds.
__device__ void differentiate(const QueryState& query, int64_t key, float scale, float& score,
                              float& d_probability) {
  const bool visible = contains(query.keys, key);
  score = visible ? expf(score * scale - query.lse) : 0.0F;
  d_probability = visible ? score * (d_probability - query.delta) : 0.0F;
}

template <int kDims>
__global__ void __launch_bounds__(kMatrixThreads) query_matrix_kernel(AttentionGradRun run) {
  const AttentionForm& form = run.shape.form;
  const LanePlace place;
  const int64_t first = int64_t{blockIdx.x} * kBlockRows;
  const int64_t head = blockIdx.y;
  const int64_t kv_head = head / (form.heads / form.kv_heads);
  auto* q = shared_memory<uint16_t>();
  uint16_t* d_o = q + kBlockRows * matrix_stride(kDims);
  const Ring<kDims> ring{d_o + kBlockRows * matrix_stride(kDims)};
  const BlockRanges ranges(run.keys, first, run.shape.q_tokens);
  const QueryState queries[2] = {{run, head, first + place.row(0)},
                                 {run, head, first + place.row(1)}};
  float dq[kDims / 8][4];
  clear_tiles(dq);
  int64_t key = ranges.next(ranges.begin(), kColumns);
  begin_queries<kBlockRows, kDims>(run, q, d_o, first, head);
  if (key < ranges.end())
    begin_keys<kColumns, kDims>(run, ring.first(0), ring.second(0), key, kv_head);
  for (int stage = 0; key < ranges.end(); stage = 1 - stage) {
    const int64_t next = ranges.next(key + kColumns, kColumns);
    if (next < ranges.end())
      begin_keys<kColumns, kDims>(run, ring.first(1 - stage), ring.second(1 - stage), next,
                                  kv_head);
    else
      end_batch();
    wait_for_batches<1>();
    __syncthreads();
    float scores[kTiles][4];
    float d_scores[kTiles][4];
    multiply_tiles<kDims>(q, ring.first(stage), scores);
    multiply_tiles<kDims>(d_o, ring.second(stage), d_scores);
    for (int j = 0; j < kTiles; ++j)
      for (int i = 0; i < 4; ++i)
        differentiate(queries[i / 2], key + 8 * j + 2 * place.t + i % 2, form.scale, scores[j][i],
                      d_scores[j][i]);
    add_weighted_tiles<kDims>(d_scores, ring.first(stage), dq);
    __syncthreads();
    key = next;
  }
  finish_batches();
  const float scale[2] = {form.scale, form.scale};
  store_tiles<kDims>(
      {run.dq, first, run.shape.q_tokens, run.keys, head * form.head_dim, form.head_dim}, scale,
      dq);
}

// Adds what the queries of one tile give to the block's keys.
template <int kDims>
__device__ void add_tile(const AttentionGradRun& run, const uint16_t* k, const uint16_t* v,
                         const uint16_t* q, const uint16_t* d_o, int64_t first_key, int64_t query,
                         int64_t head, float (&dk)[kDims / 8][4], float (&dv)[kDims / 8][4]) {
  const LanePlace place;
  float scores[kTiles][4];
  float d_scores[kTiles][4];
  multiply_tiles<kDims>(k, q, scores);
  multiply_tiles<kDims>(v, d_o, d_scores);
  for (int j = 0; j < kTiles; ++j)
    for (int odd = 0; odd < 2; ++odd) {
      const QueryState state(run, head, query + 8 * j + 2 * place.t + odd);
      for (int upper = 0; upper < 2; ++upper)
        differentiate(state, first_key + place.row(upper), run.shape.form.scale,
                      scores[j][2 * upper + odd], d_scores[j][2 * upper + odd]);
    }
  add_weighted_tiles<kDims>(d_scores, q, dk);
  add_weighted_tiles<kDims>(scores, d_o, dv);
}

// Tiles of queries, of all heads that read the key head, one after the other.
struct QueryWalk {
  const BlockRanges& ranges;
  int64_t last_head;  // the one after
  int64_t head;
  int64_t query;

  __device__ bool ended() const { return head >= last_head; }
  __device__ void find(int64_t from) {
    query = ranges.next(from, kColumns);
    if (query < ranges.end()) return;
    ++head;
    query = ranges.next(ranges.begin(), kColumns);
    if (query >= ranges.end()) head = last_head;
  }
};

template <int kDims>
__global__ void __launch_bounds__(kMatrixThreads) key_matrix_kernel(AttentionGradRun run) {
  const AttentionForm& form = run.shape.form;
  const int64_t first = int64_t{blockIdx.x} * kBlockRows;
  const int64_t kv_head = blockIdx.y;
  const int64_t group = form.heads / form.kv_heads;
  auto* k = shared_memory<uint16_t>();
  uint16_t* v = k + kBlockRows * matrix_stride(kDims);
  const Ring<kDims> ring{v + kBlockRows * matrix_stride(kDims)};
  const BlockRanges ranges(run.queries, first, run.shape.k_tokens);
  float dk[kDims / 8][4];
  float dv[kDims / 8][4];
  clear_tiles(dk);
  clear_tiles(dv);
  QueryWalk walk{ranges, (kv_head + 1) * group, kv_head * group, 0};
  walk.query = ranges.next(ranges.begin(), kColumns);
  if (walk.query >= ranges.end()) walk.head = walk.last_head;
  begin_keys<kBlockRows, kDims>(run, k, v, first, kv_head);
  if (!walk.ended())
    begin_queries<kColumns, kDims>(run, ring.first(0), ring.second(0), walk.query, walk.head);
  for (int stage = 0; !walk.ended(); stage = 1 - stage) {
    QueryWalk next = walk;
    next.find(walk.query + kColumns);
    if (!next.ended())
      begin_queries<kColumns, kDims>(run, ring.first(1 - stage), ring.second(1 - stage), next.query,
                                     next.head);
    else
      end_batch();
    wait_for_batches<1>();
    __syncthreads();
    add_tile<kDims>(run, k, v, ring.first(stage), ring.second(stage), first, walk.query, walk.head,
                    dk, dv);
    __syncthreads();
    walk.head = next.head;
    walk.query = next.query;
  }
  finish_batches();
  const float scale[2] = {form.scale, form.scale};
  const float one[2] = {1.0F, 1.0F};
  const int64_t column = kv_head * form.head_dim;
  store_tiles<kDims>({run.dk, first, run.shape.k_tokens, run.queries, column, form.head_dim}, scale,
                     dk);
  store_tiles<kDims>({run.dv, first, run.shape.k_tokens, run.queries, column, form.head_dim}, one,
                     dv);
}

template <int kDims>
void launch_matrix(const AttentionGradRun& run, cudaStream_t stream) {
  const AttentionShape& shape = run.shape;
  const int32_t shared_bytes = matrix_shared_bytes(2, kColumns, kDims);
  if (shape.q_tokens > 0)
    launch(query_matrix_kernel<kDims>,
           matrix_tiles_of(shape.q_tokens, shape.form.heads, shared_bytes), stream, run);
  if (shape.k_tokens > 0)
    launch(key_matrix_kernel<kDims>,
           matrix_tiles_of(shape.k_tokens, shape.form.kv_heads, shared_bytes), stream, run);
}

}  // namespace

void attention_grad_matrix(const AttentionGradRun& run, cudaStream_t stream) {
  find_delta(run, stream);
  if (matrix_dims(run.shape.form.head_dim) == 64)
    launch_matrix<64>(run, stream);
  else
    launch_matrix<128>(run, stream);
}

}  // namespace snug::backends::cuda
