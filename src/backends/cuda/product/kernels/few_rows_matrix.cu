#include "backends/cuda/product/kernels/few_rows_matrix.h"

#include "backends/cuda/attention/kernels/rotation.cuh"
#include "backends/cuda/elementwise/kernels/activations.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/norm/kernels/norm_rows.cuh"
#include "backends/cuda/product/kernels/few_rows_step.cuh"

namespace snug::backends::cuda {
namespace {

constexpr int kWarps = kFewRowsWarps;
constexpr int kThreads = kWarps * kLanes;
// Blocks per multiprocessor for which the registers must suffice: one of this kernel, and one of
// the next. The sums of 16 rows take the registers of both.
template <int kRows>
inline constexpr int kBlocks = kRows <= 8 ? 2 : 1;

// The block's sums by warp, for one part.
template <int kRows>
using WarpSums = float[kWarps][kRows][kFewRowsOutputs];
// Of up to kFewRows two tiles alternate: the sums of one are added up while those of the next are
// computed. A tile has one part, or two that are gated.
template <int kRows>
inline constexpr int kTurns = kRows <= kFewRows ? 2 : 1;
template <int kRows>
using TileSums = WarpSums<kRows>[kTurns<kRows>][2];
// A norm's partial sums: one float per warp of a block of rms_norm.
using NormSums = float[kMaxRowThreads / kLanes];
static_assert(sizeof(TileSums<kFewRows>) + sizeof(NormSums) == kFewRowsDeclaredBytes);
static_assert(sizeof(TileSums<8>) == sizeof(TileSums<kFewRows>));
static_assert(sizeof(TileSums<kMostFewRows>) == few_rows_sum_bytes(kMostFewRows));
// A thread finishes one output of a tile.
static_assert(kMostFewRows * kFewRowsOutputs <= kThreads);

// The inputs of a warp: consecutive whole steps, distributed as evenly as possible.
struct Share {
  int32_t begin;
  int32_t end;

  __device__ Share(int32_t columns, int32_t step) {
    const int32_t steps = (columns + step - 1) / step;
    const auto warp = static_cast<int32_t>(threadIdx.x / kLanes);
    begin = steps * warp / kWarps * step;
    end = steps * (warp + 1) / kWarps * step;
    if (end > columns) end = columns;
  }
};

// Writes zeros after each row that the block keeps, and after all rows.
__device__ void share_zeros(int64_t rows, int64_t columns, uint16_t* shared) {
  for (int64_t row = 0; row <= rows; ++row) {
    uint16_t* zeros = shared + row * few_rows_stride(columns) + (row < rows ? columns : 0);
    const int64_t count = row < rows ? kFewRowsPadding : kFewRowsZeros;
    for (int64_t i = int64_t{threadIdx.x} * kVectorElements; i < count;
         i += int64_t{kThreads} * kVectorElements)
      store_vector(zeros + i, {});
  }
}

// The rows of a launch that a block multiplies.
struct BlockRows {
  int64_t first;
  int count;
};

// Copies the rows of x that the block multiplies to shared memory.
__device__ void share_rows(const DeviceRows& x, int64_t rows, int64_t columns, uint16_t* shared) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = int64_t{threadIdx.x} * kVectorElements; column < columns;
         column += int64_t{kThreads} * kVectorElements)
      store_vector(shared + row * few_rows_stride(columns) + column,
                   load_vector(static_cast<const uint16_t*>(x.data) + row * x.stride + column));
}

// Copies the normed rows of x, with the same bits as rms_norm, whose block has `threads` threads.
// `partial` is shared memory with one float per warp of that block; `format` is that of the copied
// rows.
__device__ void share_normed_rows(const FewRowsNorm& norm, int64_t rows, int64_t columns,
                                  float* partial, ElementFormat format, uint16_t* shared) {
  const uint32_t threads = row_threads(columns / kVectorElements);
  for (int64_t row = 0; row < rows; ++row) {
    for (uint32_t thread = threadIdx.x; thread < threads; thread += kThreads) {
      float squares = 0.0F;
      for (int64_t column = int64_t{thread} * kVectorElements; column < columns;
           column += int64_t{threads} * kVectorElements) {
        const auto value = load<kVectorElements>(norm.x, row * norm.x.stride + column);
        for (int i = 0; i < kVectorElements; ++i) squares += value.at[i] * value.at[i];
      }
      squares = warp_sum(squares);
      if (thread % kLanes == 0) partial[thread / kLanes] = squares;
    }
    __syncthreads();
    float squares = 0.0F;
    for (uint32_t warp = 0; warp < threads / kLanes; ++warp) squares += partial[warp];
    const float root = root_of(squares, columns, norm.epsilon);
    for (int64_t column = int64_t{threadIdx.x} * kVectorElements; column < columns;
         column += int64_t{kThreads} * kVectorElements) {
      auto value = load<kVectorElements>(norm.x, row * norm.x.stride + column);
      const auto weight = load<kVectorElements>(norm.weight, column);
      for (int i = 0; i < kVectorElements; ++i) value.at[i] *= root * (weight.at[i] + norm.offset);
      store(DeviceRows{shared, 0, format}, row * few_rows_stride(columns) + column, value);
      if (blockIdx.x == 0) store(norm.y, row * norm.y.stride + column, value);
    }
    __syncthreads();  // the sums of the next row overwrite these
  }
}

// The place of a tile of a part whose heads are rotated: the eight pairs of an item.
template <typename Weight>
__device__ PairPlace place_of(const FewRowsPart<Weight>& part, uint32_t index) {
  const RotationPart& rotation = part.rotation;
  return {int64_t{index - part.first_tile}, kVectorElements,
          HeadForm{rotation.head_dim, rotation.width, rotation.neighbours}};
}

// A tile of outputs of one part of a launch. Those that are rotated together are in one.
struct Tile {
  uint32_t index;  // number in the launch; both parts of gated outputs have the same number
  int part;
  TileOutputs outputs;

  template <typename Weight>
  __device__ Tile(const FewRowsLaunch<Weight>& run, uint32_t of_launch)
      : index(of_launch), part(0) {
    while (run.gated.data == nullptr && part + 1 < run.count &&
           index >= run.parts[part + 1].first_tile)
      ++part;
    outputs = {int64_t{index - run.parts[part].first_tile} * kFewRowsOutputs, kVectorElements};
    if (!run.parts[part].is_rotated()) return;
    const PairPlace place = place_of(run.parts[part], index);
    outputs = {place.column, place.apart};
  }

  // The block's next tile: the other part of gated outputs, or else the tile gridDim.x further.
  template <typename Weight>
  __device__ Tile next(const FewRowsLaunch<Weight>& run) const {
    if (run.gated.data != nullptr && part == 0) {
      Tile other = *this;
      other.part = 1;
      return other;
    }
    return Tile(run, index + gridDim.x);
  }
};

// A warp's ring: what it has copied ahead of its products. Steps are copied in the order in which
// they are multiplied, tile after tile; nothing is copied beyond the last.
template <typename Step, int kStages>
class Ring {
 public:
  using Launch = FewRowsLaunch<typename Step::Weight>;

  // Begins to fill it, which reads weights.
  __device__ Ring(const Launch& run, const Share& share, uint32_t* shared)
      : stages_(shared + threadIdx.x / kLanes * kStages * kStageWords),
        tile_(run, blockIdx.x),
        first_(share.begin),
        is_over_(share.begin >= share.end),
        rows_(rows_of(run, tile_)) {
    for (int stage = 0; stage < kStages; ++stage) refill(run, share);
  }

  // Waits for the next step, which it returns.
  __device__ uint32_t* wait() const {
    wait_for_batches<kStages - 1>();
    return stages_ + stage_ * kStageWords;
  }

  // Begins to copy to the stage that was multiplied last.
  __device__ void refill(const Launch& run, const Share& share) {
    if (!is_over_) {
      Step::copy(rows_, run.parts[tile_.part].weight, first_, share.end,
                 stages_ + stage_ * kStageWords);
      advance(run, share);
    }
    end_batch();
    stage_ = stage_ + 1 == kStages ? 0 : stage_ + 1;
  }

  __device__ static typename Step::Rows rows_of(const Launch& run, const Tile& tile) {
    const auto& part = run.parts[tile.part];
    return {part.weight, tile.outputs, part.outputs, run.columns};
  }

 private:
  static constexpr bool kCodes = std::is_same_v<typename Step::Weight, Nf4Weight>;
  static constexpr int kStageWords = few_rows_stage_bytes(kCodes) / int{sizeof(uint32_t)};

  __device__ void advance(const Launch& run, const Share& share) {
    first_ += Step::kColumns;
    if (first_ < share.end) return;
    tile_ = tile_.next(run);
    is_over_ = tile_.index >= run.tiles;
    if (is_over_) return;
    first_ = share.begin;
    rows_ = rows_of(run, tile_);
  }

  uint32_t* stages_;
  int stage_ = 0;
  // The next step to copy.
  Tile tile_;
  int32_t first_;
  bool is_over_;
  typename Step::Rows rows_;
};

// Computes a warp's sums for a tile.
template <int kRows, typename Step, int kStages, typename Inputs, int kGroups>
__device__ void multiply_tile(const FewRowsLaunch<typename Step::Weight>& run, const Tile& tile,
                              const Inputs (&x)[kGroups], const uint32_t* pairs, const Share& share,
                              Ring<Step, kStages>& ring, WarpSums<kRows>& warp_sums) {
  const auto rows = Ring<Step, kStages>::rows_of(run, tile);
  LaneSums sums[kGroups] = {};
  for (int32_t first = share.begin; first < share.end; first += Step::kColumns) {
    Step::multiply(rows, run.parts[tile.part].weight, x, pairs, ring.wait(), first, share.end,
                   sums);
    ring.refill(run, share);
  }
#pragma unroll
  for (int group = 0; group < kGroups; ++group) Step::finish(sums[group]);
  const int place = 2 * lane_place();
  if (place >= Step::kGroupRows || place >= kRows) return;
  auto& mine = warp_sums[threadIdx.x / kLanes];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int row = group * Step::kGroupRows + place;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      mine[row][lane_group() + 8 * i] = sums[group][2 * i];
      mine[row + 1][lane_group() + 8 * i] = sums[group][2 * i + 1];
    }
  }
}

// A row of the block's, and its number in the launch.
struct RowPlace {
  int64_t in_block;
  int64_t row;
};

// Adds up the warps' sums for output `i` of a tile and stores it; returns the value as stored.
template <typename Weight, int kRows>
__device__ float finish_output(const FewRowsPart<Weight>& part,
                               const float (&sums)[kWarps][kRows][kFewRowsOutputs],
                               const RowPlace& at, const Tile& tile, int i) {
  const int64_t output = tile.outputs.at(i);
  float sum = 0.0F;
  for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp][at.in_block][i];
  sum *= part.alpha;
  if (part.addend.data != nullptr)
    sum += load_one(part.addend, at.row * part.addend.stride + output);
  if (part.bias.data != nullptr) sum = as_held(part.y.format, sum) + load_one(part.bias, output);
  store_one(part.y, at.row * part.y.stride + output, sum);
  return as_held(part.y.format, sum);
}

// Finishes a thread's pair of a tile that is rotated, or written to a cache.
template <typename Weight, int kRows>
__device__ void finish_pair(const FewRowsLaunch<Weight>& run, const Tile& tile,
                            const float (&sums)[kWarps][kRows][kFewRowsOutputs], const RowPlace& at,
                            int i) {
  const FewRowsPart<Weight>& part = run.parts[tile.part];
  const RotationPart& rotation = part.rotation;
  const PairPlace place = place_of(part, tile.index);
  float low = finish_output(part, sums, at, tile, i);
  float high = finish_output(part, sums, at, tile, i + kVectorElements);
  if (place.is_rotated && place.head < rotation.rotated_heads) {
    const int64_t angle = at.row * run.table.stride + place.i + i;
    rotate_pair(low, high, load_one(run.table, angle),
                load_one(run.table, angle + rotation.width / 2));
  }
  const auto put = [&](const DeviceRows& to, int64_t to_row) {
    store_one(to, to_row * to.stride + place.column + i, low);
    store_one(to, to_row * to.stride + place.column + place.apart + i, high);
  };
  if (rotation.y.data != nullptr) {
    put(rotation.y, at.row);
    low = as_held(rotation.y.format, low);
    high = as_held(rotation.y.format, high);
  }
  if (rotation.cache.data == nullptr) return;
  const int64_t slot = run.slots[at.row];
  if (slot < 0) return;
  device_check(slot < rotation.cache_rows);
  put(rotation.cache, slot);
}

// Finishes a thread's output of a tile, after its last part; where parts are gated, it combines
// both.
template <typename Weight, int kRows>
__device__ void finish_tile(const FewRowsLaunch<Weight>& run, const Tile& tile,
                            const float (&sums)[2][kWarps][kRows][kFewRowsOutputs],
                            const BlockRows& rows) {
  const bool is_gated = run.gated.data != nullptr;
  const FewRowsPart<Weight>* part = run.parts + (is_gated ? 0 : tile.part);
  const RowPlace at{threadIdx.x / kFewRowsOutputs, rows.first + threadIdx.x / kFewRowsOutputs};
  const auto i = static_cast<int>(threadIdx.x % kFewRowsOutputs);
  if (at.in_block >= rows.count || tile.outputs.at(i) >= part->outputs) return;
  if (part->is_rotated()) {
    if (i < kVectorElements) finish_pair(run, tile, sums[0], at, i);
    return;
  }
  const float y = finish_output(part[0], sums[0], at, tile, i);
  if (!is_gated) return;
  const float up = finish_output(part[1], sums[1], at, tile, i);
  store_one(run.gated, at.row * run.gated.stride + tile.outputs.at(i), silu_mul_of(y, up));
}

// Sums in declared shared memory where they fit, else in `dynamic`.
template <int kRows>
__device__ TileSums<kRows>& tile_sums(float* dynamic) {
  if constexpr (few_rows_sum_bytes(kRows) > 0) {
    return *reinterpret_cast<TileSums<kRows>*>(dynamic);
  } else {
    __shared__ TileSums<kRows> sums;
    return sums;
  }
}

// Computes the block's tiles: every gridDim.x-th.
template <int kRows, typename Step, int kStages, typename Inputs, int kGroups>
__device__ void multiply_tiles(const FewRowsLaunch<typename Step::Weight>& run,
                               const Inputs (&x)[kGroups], const uint32_t* pairs,
                               const Share& share, Ring<Step, kStages>& ring, TileSums<kRows>& sums,
                               const BlockRows& rows) {
  const bool is_gated = run.gated.data != nullptr;
  int turn = 0;
  for (Tile tile(run, blockIdx.x); run.tiles > tile.index; tile = tile.next(run)) {
    const int side = is_gated ? tile.part : 0;
    multiply_tile<kRows>(run, tile, x, pairs, share, ring, sums[turn][side]);
    if (is_gated && side == 0) continue;
    __syncthreads();
    finish_tile(run, tile, sums[turn], rows);
    if constexpr (kTurns<kRows> == 1)
      __syncthreads();
    else
      turn = 1 - turn;
  }
}

// kKeepsX: x is first copied to shared memory, while the first weights arrive.
template <typename Step, int kRows, bool kKeepsX, bool kDeep>
__global__ void __launch_bounds__(kThreads, kBlocks<kRows>)
    few_rows_matrix_kernel(const __grid_constant__ FewRowsLaunch<typename Step::Weight> run,
                           const __grid_constant__ Nf4Values values) {
  constexpr bool kCodes = std::is_same_v<typename Step::Weight, Nf4Weight>;
  constexpr int kStages = few_rows_stages(kCodes, kDeep);
  constexpr int kGroups = kRows < Step::kGroupRows ? 1 : kRows / Step::kGroupRows;
  constexpr int64_t kTableAt = few_rows_ring_bytes(kCodes, kDeep);
  constexpr int64_t kSumsAt = kTableAt + (kCodes ? kFewRowsTableBytes : 0);
  constexpr int64_t kInputsAt = kSumsAt + few_rows_sum_bytes(kRows);
  __shared__ NormSums partial;
  let_next_kernel_begin();
  // An earlier kernel in flight may be writing the weight (dequantize_nf4).
  if (!run.weights_are_constant) wait_for_kernels_before();
  auto* const memory = shared_memory<char>();
  auto* const pairs = reinterpret_cast<uint32_t*>(memory + kTableAt);
  auto* const shared_x = reinterpret_cast<uint16_t*>(memory + kInputsAt);
  const Share share(static_cast<int32_t>(run.columns), Step::kColumns);
  Ring<Step, kStages> ring(run, share, shared_memory<uint32_t>());
  if constexpr (kCodes) share_pairs<typename Step::InputFormat>(values, pairs);
  // Rows of y blocks of the grid, where a launch has more than kMostFewRows.
  const int64_t first_row = kRows == kMostFewRows ? int64_t{blockIdx.y} * kRows : 0;
  const int64_t left = run.rows - first_row;
  const BlockRows rows{first_row, static_cast<int>(left < kRows ? left : kRows)};
  DeviceRows x_rows = run.x;
  x_rows.data = static_cast<uint16_t*>(run.x.data) + first_row * run.x.stride;
  if constexpr (kKeepsX) share_zeros(rows.count, run.columns, shared_x);
  if (run.weights_are_constant) wait_for_kernels_before();
  if constexpr (kKeepsX) {
    if (kRows <= kFewRows && run.norm.y.data != nullptr)
      share_normed_rows(run.norm, run.rows, run.columns, partial, Step::InputFormat::kFormat,
                        shared_x);
    else
      share_rows(x_rows, rows.count, run.columns, shared_x);
  }
  if constexpr (kKeepsX || kCodes) __syncthreads();
  using Inputs = std::conditional_t<kKeepsX, SharedInputs, GlobalInputs>;
  Inputs x[kGroups];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int row = Step::lane_row(group, rows.count);
    if constexpr (kKeepsX)
      x[group] = SharedInputs(shared_x, run.columns, rows.count, row, Step::lane_column());
    else
      x[group] = GlobalInputs(x_rows, rows.count, row, Step::lane_column());
  }
  auto& sums = tile_sums<kRows>(reinterpret_cast<float*>(memory + kSumsAt));
  multiply_tiles<kRows>(run, x, pairs, share, ring, sums, rows);
}

template <typename Step, int kRows>
void launch_rows(const FewRowsLaunch<typename Step::Weight>& run, const Card& card,
                 cudaStream_t stream) {
  constexpr bool kCodes = std::is_same_v<typename Step::Weight, Nf4Weight>;
  const int64_t rows = run.rows < kMostFewRows ? run.rows : kMostFewRows;
  const FewRowsBlock block = few_rows_block(rows, run.columns, kCodes, card);
  LaunchShape shape;
  shape.shared_bytes = static_cast<int32_t>(block.dynamic_bytes);
  shape.declared_bytes = kFewRowsDeclaredBytes;
  // One block on each multiprocessor, so that the next kernel's have room beside them.
  const auto multiprocessors = static_cast<uint32_t>(card.multiprocessors);
  shape.grid.x = run.tiles < multiprocessors ? run.tiles : multiprocessors;
  shape.grid.y = static_cast<uint32_t>(ceil_div(run.rows, rows));
  shape.block.x = kThreads;
  shape.begins_early = true;
  auto kernel = block.keeps_x ? few_rows_matrix_kernel<Step, kRows, true, false>
                              : few_rows_matrix_kernel<Step, kRows, false, false>;
  if constexpr (kRows <= kFewRows) {
    if (block.is_deep)
      kernel = block.keeps_x ? few_rows_matrix_kernel<Step, kRows, true, true>
                             : few_rows_matrix_kernel<Step, kRows, false, true>;
  }
  launch(kernel, shape, stream, run, nf4_values());
}

template <typename Step>
void launch_few_rows(const FewRowsLaunch<typename Step::Weight>& run, const Card& card,
                     cudaStream_t stream) {
  if (run.tiles == 0 || run.rows == 0) return;
  switch (few_rows_room(run.rows)) {
    case kFewRows:
      return launch_rows<Step, kFewRows>(run, card, stream);
    case 8:
      return launch_rows<Step, 8>(run, card, stream);
    default:
      return launch_rows<Step, kMostFewRows>(run, card, stream);
  }
}

template <typename Format>
void launch_few_nf4_rows(const FewRowsLaunch<Nf4Weight>& run, const Card& card,
                         cudaStream_t stream) {
  if (run.parts[0].weight.absmax == nullptr)
    launch_few_rows<Nf4Step<Format, true>>(run, card, stream);
  else
    launch_few_rows<Nf4Step<Format, false>>(run, card, stream);
}

}  // namespace

void multiply_few_rows(const FewRowsLaunch<NarrowWeight>& run, const Card& card,
                       cudaStream_t stream) {
  if (run.x.format == ElementFormat::f16)
    launch_few_rows<NarrowStep<F16>>(run, card, stream);
  else
    launch_few_rows<NarrowStep<Bf16>>(run, card, stream);
}

void multiply_few_rows(const FewRowsLaunch<Nf4Weight>& run, const Card& card, cudaStream_t stream) {
  if (run.x.format == ElementFormat::f16)
    launch_few_nf4_rows<F16>(run, card, stream);
  else
    launch_few_nf4_rows<Bf16>(run, card, stream);
}

}  // namespace snug::backends::cuda
