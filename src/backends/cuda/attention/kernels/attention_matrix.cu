// The forward pass of attention.cu in a 16-bit format on the tensor cores: the same loop, with 64
// queries per block. Keys and values in 8 bits are multiplied as bf16; their scales multiply the
// columns of the scores, and of the weights.
#include "backends/cuda/attention/kernels/attention_matrix_tile.cuh"
#include "backends/cuda/attention/kernels/key_codes.cuh"
#include "backends/cuda/attention/kernels/score_adjustment.cuh"
#include "backends/cuda/kernels/row_end.cuh"

#include <type_traits>

namespace snug::backends::cuda {
namespace {

// The maximum over the four lanes that share rows g and g + 8.
__device__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 2));
}
__device__ float row_sum(float value) {
  value += __shfl_xor_sync(kWholeWarp, value, 1);
  return value + __shfl_xor_sync(kWholeWarp, value, 2);
}

// The running maximum (of scores times log2(e), since weights are powers of two) and sum of rows g
// and g + 8; a lane's sum covers its own columns.
struct SoftmaxState {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};
};

// Turns the scores of the tile starting at `key` into weights relative to each row's new maximum;
// `factor` becomes the factor for its earlier sums. Where scores are not adjusted, `scale`
// multiplies them and includes log2(e).
template <bool kAdjusts, bool kBiased, int kTiles>
__device__ void weigh(float (&scores)[kTiles][4], const TokenRange (&keys)[2],
                      const int32_t (&diagonals)[2], int32_t key, float scale,
                      const ScoreAdjustment<kBiased, true>& adjustment, SoftmaxState& state,
                      float (&factor)[2]) {
  const FragmentPlace place;
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    const SeenColumns seen_columns(keys[upper], key + 2 * place.t);
    float largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int i = 2 * upper; i < 2 * upper + 2; ++i) {
        const int column = 8 * j + i % 2;
        const bool visible = seen_columns.contains(column);
        if constexpr (kAdjusts) {
          const int32_t distance = key + 2 * place.t + column - diagonals[upper];
          scores[j][i] = visible ? adjustment.at(scores[j][i], distance).score : -INFINITY;
        } else {
          scores[j][i] = visible ? scores[j][i] * scale : -INFINITY;
        }
        largest = fmaxf(largest, scores[j][i]);
      }
    largest = fmaxf(state.largest[upper], row_max(largest));
    // A row that has seen no key yet gets weights of zero, and its sums stay zero.
    const float beneath = largest > -INFINITY ? largest : 0.0F;
    factor[upper] = power_of_two(state.largest[upper] - beneath);
    state.sum[upper] *= factor[upper];
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int i = 2 * upper; i < 2 * upper + 2; ++i) {
        scores[j][i] = power_of_two(scores[j][i] - beneath);
        state.sum[upper] += scores[j][i];
      }
    state.largest[upper] = largest;
  }
}

// Blocks per multiprocessor: as many as its shared memory and registers hold without spills.
constexpr int blocks_of(int dims) { return dims > 64 ? 2 : 3; }

// Where a warp's queries are read from: registers, or shared memory where sums take the registers.
template <int kDims>
using QueryRows = std::conditional_t<(kDims > 128), TileRows<kDims>, KeptRows<kDims>>;

// How a block's keys lie: in rows that follow one another, in pages, or in pages in 8 bits.
enum class KeyPlace : uint8_t { rows, pages, codes_in_pages };

template <int kDims, bool kAdjusts, bool kBiased, KeyPlace kPlace, typename Format>
__device__ void attend(const AttentionRun& run) {
  constexpr bool kPaged = kPlace != KeyPlace::rows;
  constexpr bool kCoded = kPlace == KeyPlace::codes_in_pages;
  constexpr int kKeys = matrix_keys(kDims);
  constexpr int kTiles = kKeys / 8;
  using KeyCopy =
      std::conditional_t<kCoded, CodesCopy<kKeys, kDims>, TileCopy<kKeys, kDims, kPaged>>;
  const AttentionForm& form = run.shape.form;
  const FragmentPlace place;
  const int64_t first = int64_t{blockIdx.x} * kBlockRows;
  const int64_t head = blockIdx.y;
  const int64_t q_tokens = run.shape.q_tokens;
  const int64_t q_column = head * form.head_dim;
  const int64_t kv_head = head / (form.heads / form.kv_heads);
  const int64_t kv_column = kv_head * form.head_dim;
  auto* q_tile = shared_memory<uint16_t>();
  const TileRing<kKeys, kDims> ring{q_tile + kBlockRows * kDims};
  const KeyCopy k(run.k, form.head_dim, run.rows);
  const KeyCopy v(run.v, form.head_dim, run.rows);
  __shared__ std::conditional_t<kCoded, TileScales<kKeys>, char> scales;
  const BlockRanges<kPaged> ranges(run.keys, first, q_tokens);
  const TokenRange keys[2] = {range_at(run.keys, first + place.row(0), q_tokens),
                              range_at(run.keys, first + place.row(1), q_tokens)};
  const int32_t diagonals[2] = {diagonal_of<kBiased>(run.shape, first + place.row(0), keys[0]),
                                diagonal_of<kBiased>(run.shape, first + place.row(1), keys[1])};
  const ScoreAdjustment<kBiased, true> adjustment(form, head, kLog2OfE);
  SoftmaxState state;
  float output[kDims / 8][4];
  clear_tiles(output);
  const auto begin_keys = [&](int stage, const SeenTile& tile) {
    if (!tile.is_end()) {
      k.begin(ring.first(stage), tile.token, kv_column, tile.tokens);
      v.begin(ring.second(stage), tile.token, kv_column, tile.tokens);
      if constexpr (kCoded)
        scales.read(stage, tile, run.rows, run.k_scales.of_head(kv_head),
                    run.v_scales.of_head(kv_head));
    }
    end_batch();  // ends a batch, which may be empty, so that the number of batches is fixed
  };
  TileCopy<kBlockRows, kDims>(run.q, form.head_dim).begin(q_tile, first, q_column, ranges.own());
  end_batch();
  SeenTile tile = ranges.template first<kKeys>();
  begin_keys(0, tile);
  wait_for_batches<1>();
  __syncthreads();
  const QueryRows<kDims> q{q_tile};
  for (int stage = 0; !tile.is_end(); stage = 1 - stage) {
    const SeenTile next = ranges.template after<kKeys>(tile);
    wait_for_batches<0>();
    // The tile has arrived, and every warp has read the one that the next copy overwrites.
    __syncthreads();
    begin_keys(1 - stage, next);
    float scores[kTiles][4];
    multiply_tiles<kDims, Format>(q, ring.first(stage), scores);
    if constexpr (kCoded) scale_columns(scores, scales.keys[stage]);
    float factor[2];
    weigh<kAdjusts, kBiased>(scores, keys, diagonals, tile.token, form.scale * kLog2OfE, adjustment,
                             state, factor);
#pragma unroll
    for (int j = 0; j < kDims / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) output[j][i] *= factor[i / 2];
    if constexpr (kCoded) scale_columns(scores, scales.values[stage]);
    add_weighted_tiles<kDims, Format>(scores, ring.second(stage), output);
    tile = next;
  }
  finish_batches();
  float scale[2];
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    const float sum = row_sum(state.sum[upper]);
    const int64_t row = first + place.row(upper);
    const RowEnd end = end_of_row(run.sinks, head, state.largest[upper] / kLog2OfE, sum);
    scale[upper] = end.scale;
    if (place.t == 0 && row < q_tokens) run.lse[head * q_tokens + row] = end.lse;
  }
  store_tiles({run.o, first, q_tokens, q_column, form.head_dim}, scale, output);
}

template <int kDims, bool kAdjusts, KeyPlace kPlace, typename Format>
__global__ void __launch_bounds__(kMatrixThreads, blocks_of(kDims))
    attention_matrix_kernel(AttentionRun run) {
  attend<kDims, kAdjusts, false, kPlace, Format>(run);
}
template <int kDims, KeyPlace kPlace, typename Format>
__global__ void __launch_bounds__(kMatrixThreads, blocks_of(kDims))
    attention_bias_kernel(AttentionRun run) {
  attend<kDims, true, true, kPlace, Format>(run);
}

template <int kDims, KeyPlace kPlace, typename Format>
auto forward_kernel_of(const AttentionForm& form) -> void (*)(AttentionRun) {
  if constexpr (kDims <= kMaxBiasedMatrixDims)
    if (is_biased(form)) return attention_bias_kernel<kDims, kPlace, Format>;
  return are_adjusted(form) ? attention_matrix_kernel<kDims, true, kPlace, Format>
                            : attention_matrix_kernel<kDims, false, kPlace, Format>;
}

template <int kDims, KeyPlace kPlace, typename Format>
void launch_matrix(const AttentionRun& run, cudaStream_t stream) {
  const AttentionShape& shape = run.shape;
  launch(forward_kernel_of<kDims, kPlace, Format>(shape.form),
         matrix_tiles_of(shape.q_tokens, shape.form.heads, attention_matrix_shared_bytes(kDims)),
         stream, run);
}

template <KeyPlace kPlace, typename Format>
void launch_dims(const AttentionRun& run, cudaStream_t stream) {
  with_matrix_dims(run.shape.form.head_dim, [&](auto dims) {
    launch_matrix<decltype(dims)::value, kPlace, Format>(run, stream);
  });
}

template <typename Format>
void launch_rows(const AttentionRun& run, cudaStream_t stream) {
  if (run.rows == nullptr)
    launch_dims<KeyPlace::rows, Format>(run, stream);
  else
    launch_dims<KeyPlace::pages, Format>(run, stream);
}

}  // namespace

void attention_matrix(const AttentionRun& run, cudaStream_t stream) {
  if (run.shape.q_tokens == 0) return;
  if (run.k_scales.data != nullptr)
    launch_dims<KeyPlace::codes_in_pages, Bf16>(run, stream);
  else if (run.q.format == ElementFormat::f16)
    launch_rows<F16>(run, stream);
  else
    launch_rows<Bf16>(run, stream);
}

}  // namespace snug::backends::cuda
