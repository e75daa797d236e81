// A step of a warp in few_rows_matrix.cu: what its lanes copy ahead to shared memory, 16 bytes of
// each of two outputs, and the products with it. The order of inputs within a tensor core product
// is arbitrary as long as both factors have the same, so each lane takes adjacent inputs. A lane
// reads only what it copied itself, so no barrier is needed.
#pragma once

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/warp_matrix.cuh"
#include "backends/cuda/product/kernels/few_rows_matrix.h"
#include "backends/cuda/product/kernels/few_rows_ring.h"
#include "backends/cuda/product/kernels/nf4.cuh"
#include "backends/cuda/product/kernels/weight_copy.cuh"

namespace snug::backends::cuda {

// A lane's part of the sums: outputs g and g + 8, for two rows each (warp_matrix.cuh).
using LaneSums = float[4];

__device__ inline int lane_group() { return static_cast<int>(threadIdx.x % kLanes / 4); }
__device__ inline int lane_place() { return static_cast<int>(threadIdx.x % 4); }

// The outputs of a tile: eight from `first` on, and eight that are `apart` further.
struct TileOutputs {
  int64_t first;
  int64_t apart;

  __device__ int64_t at(int i) const { return first + i % 8 + (i < 8 ? 0 : apart); }
  // The row of the weight: beyond the last output the last one is read again, and those sums are
  // not used.
  __device__ int64_t row(int i, int64_t outputs) const {
    const int64_t output = at(i);
    return output < outputs ? output : outputs - 1;
  }
};

// In a step a lane has inputs of each of its two outputs, from `column` on, and those of one row of
// x, or zeros. Here rows of x are in shared memory, with zeros after each and after all rows.
class SharedInputs {
 public:
  SharedInputs() = default;
  // `row` is at least `rows` where the lane has zeros.
  __device__ SharedInputs(const uint16_t* shared, int64_t columns, int rows, int row,
                          int32_t column)
      : apart_(row < rows ? 1 : 0),
        at_(shared + (row < rows ? row : rows) * few_rows_stride(columns) + apart_ * column) {}

  // Reads eight of the lane's inputs, at `offset` from its first one, of a step that begins at
  // `first`.
  __device__ Vector16 read(int32_t first, int32_t offset, int32_t) const {
    return load_vector(at_ + first * apart_ + offset);
  }

 private:
  int32_t apart_ = 0;
  const uint16_t* at_ = nullptr;
};

// Reads rows of x in place.
class GlobalInputs {
 public:
  GlobalInputs() = default;
  __device__ GlobalInputs(const DeviceRows& x, int rows, int row, int32_t column)
      : at_(static_cast<const uint16_t*>(x.data) + row * x.stride + column),
        column_(column),
        is_there_(row < rows) {}

  __device__ Vector16 read(int32_t first, int32_t offset, int32_t end) const {
    if (!is_there_ || column_ + first + offset >= end) return {};
    return load_vector(at_ + first + offset);
  }

 private:
  const uint16_t* at_ = nullptr;
  int32_t column_ = 0;
  bool is_there_ = false;
};

// The 16 bytes of output g or, if `i` is 1, g + 8, in a warp's stage of the ring.
__device__ inline uint32_t* stage_vector(uint32_t* stage, int i) {
  return stage + (i * kLanes + static_cast<int>(threadIdx.x % kLanes)) * 4;
}

// In a step a lane has eight inputs of each of its two outputs, and those of row g of each eight
// rows of x.
template <typename Format>
class NarrowStep {
 public:
  using Weight = NarrowWeight;
  using InputFormat = Format;
  static constexpr int32_t kColumns = 32;
  static constexpr int kGroupRows = 8;

  // The addresses of a lane's rows.
  struct Rows {
    const uint16_t* at[2];

    __device__ Rows(const NarrowWeight& weight, const TileOutputs& tile, int64_t outputs, int64_t) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        at[i] =
            weight.data + tile.row(lane_group() + 8 * i, outputs) * weight.stride + lane_column();
    }
  };

  __device__ static int lane_row(int group, int) { return kGroupRows * group + lane_group(); }
  __device__ static int32_t lane_column() { return lane_place() * kVectorElements; }

  // Begins to copy the step at column `first`, with zeros from column `end` on.
  __device__ static void copy(const Rows& rows, const NarrowWeight&, int32_t first, int32_t end,
                              uint32_t* stage) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      begin_weight_copy(stage_vector(stage, i), rows.at[i] + first, first + lane_column() >= end);
  }

  template <typename Inputs, int kGroups>
  __device__ static void multiply(const Rows&, const NarrowWeight&, const Inputs (&x)[kGroups],
                                  const uint32_t*, uint32_t* stage, int32_t first, int32_t end,
                                  LaneSums (&sums)[kGroups]) {
    Vector16 inputs[kGroups];
#pragma unroll
    for (int group = 0; group < kGroups; ++group) inputs[group] = x[group].read(first, 0, end);
    const Vector16 weight[2] = {load_vector(stage_vector(stage, 0)),
                                load_vector(stage_vector(stage, 1))};
#pragma unroll
    for (int word = 0; word < 4; word += 2) {
      const uint32_t a[4] = {weight[0].word[word], weight[1].word[word], weight[0].word[word + 1],
                             weight[1].word[word + 1]};
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        multiply_add(Format(), sums[group], a, inputs[group].word[word],
                     inputs[group].word[word + 1]);
    }
  }

  __device__ static void finish(LaneSums&) {}
};

// The two values of each byte of codes, as a pair in the format of x; the table has one copy per
// lane, to avoid bank conflicts. All threads of the block call the functions that fill it.
inline constexpr int kCodePairs = 256;
inline constexpr uint32_t kPairBytes = uint32_t{kLanes} * 4;
static_assert(int64_t{kCodePairs} * kPairBytes == kFewRowsTableBytes);

template <typename Format>
__device__ void share_pairs(const Nf4Values& values, uint32_t* table) {
  constexpr int kVectors = kLanes / 4;  // the vectors of a byte's copies of its pair
  for (auto byte = static_cast<int>(threadIdx.x); byte < kCodePairs;
       byte += static_cast<int>(blockDim.x)) {
    const uint32_t pair = Format::narrow_pair(values.at[byte >> 4], values.at[byte & 15]);
    // Adjacent threads start with different copies, to avoid bank conflicts.
#pragma unroll
    for (int i = 0; i < kVectors; ++i)
      store_vector(table + byte * kLanes + (i + byte) % kVectors * 4, {{pair, pair, pair, pair}});
  }
}

// In a step a lane has 32 inputs of each of its two outputs: those of lane places 0 and 1 are in
// one block of 64, those of 2 and 3 in the next. The sums for the two blocks are kept apart, since
// their scales differ: columns 0 to 3 of the product are four rows of x with zeros for the second
// block, columns 4 to 7 the same rows with zeros for the first. The 32 scales of a step are copied
// and decoded by a lane each: that of output lane % 16 and block lane / 16.
template <typename Format, bool kNested>
class Nf4Step {
 public:
  using Weight = Nf4Weight;
  using InputFormat = Format;
  static constexpr int32_t kColumns = 128;
  static constexpr int kGroupRows = 4;

  // The beginnings of a lane's rows of codes, and the block whose scale the lane has.
  struct Rows {
    const uint8_t* codes[2];
    uint32_t scale;

    __device__ Rows(const Nf4Weight& weight, const TileOutputs& tile, int64_t outputs,
                    int64_t columns) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        codes[i] =
            weight.codes + (tile.row(lane_group() + 8 * i, outputs) * columns + lane_column()) / 2;
      const int64_t row = tile.row(static_cast<int>(threadIdx.x % kFewRowsOutputs), outputs);
      scale = static_cast<uint32_t>(row * columns / 64) + scale_block();
    }
  };

  // The lane's row of x in a group, or the zeros after all rows where its inputs belong to the
  // other block.
  __device__ static int lane_row(int group, int rows) {
    const bool is_mine = (lane_group() < kGroupRows) == (lane_place() < 2);
    return is_mine ? kGroupRows * group + lane_group() % kGroupRows : rows;
  }
  __device__ static int32_t lane_column() { return lane_place() * kLaneColumns; }

  __device__ static void copy(const Rows& rows, const Nf4Weight& weight, int32_t first, int32_t end,
                              uint32_t* stage) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      begin_weight_copy(stage_vector(stage, i), rows.codes[i] + first / 2,
                        first + lane_column() >= end);
    const uint32_t block = rows.scale + static_cast<uint32_t>(first / 64);
    const bool is_beyond = first + static_cast<int32_t>(scale_block()) * 64 >= end;
    if constexpr (kNested) {
      // The word with the code: bytes cannot be copied one by one. Its other bytes may lie beyond
      // the tensor, but never beyond the arena.
      const auto* code = reinterpret_cast<const uint32_t*>(
          reinterpret_cast<uintptr_t>(weight.absmax_codes + block) & ~uintptr_t{3});
      begin_value_copy(scale_word(stage, 0), code, is_beyond);
      begin_value_copy(scale_word(stage, 1),
                       reinterpret_cast<const uint32_t*>(weight.nested_absmax + block / 256),
                       is_beyond);
    } else {
      begin_value_copy(scale_word(stage, 0),
                       reinterpret_cast<const uint32_t*>(weight.absmax + block), is_beyond);
    }
  }

  template <typename Inputs, int kGroups>
  __device__ static void multiply(const Rows& rows, const Nf4Weight& weight,
                                  const Inputs (&x)[kGroups], const uint32_t* pairs,
                                  uint32_t* stage, int32_t first, int32_t end,
                                  LaneSums (&sums)[kGroups]) {
    // The lane's address of the pair for a byte of codes is `mine` + kPairBytes * byte.
    const uint32_t mine = shared_address(pairs) + threadIdx.x % kLanes * 4;
    const float own_scale = scale_of_lane(rows, weight, stage, first);
    const Vector16 codes[2] = {load_vector(stage_vector(stage, 0)),
                               load_vector(stage_vector(stage, 1))};
    LaneSums products[kGroups] = {};
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      Vector16 inputs[kGroups];
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        inputs[group] = x[group].read(first, word * kVectorElements, end);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto pair = [&](int i, int byte) {
          return load_shared_word(
              __dp4a(codes[i].word[word], kPairBytes << (16 * half + 8 * byte), mine));
        };
        const uint32_t a[4] = {pair(0, 0), pair(1, 0), pair(0, 1), pair(1, 1)};
#pragma unroll
        for (int group = 0; group < kGroups; ++group)
          multiply_add(Format(), products[group], a, inputs[group].word[2 * half],
                       inputs[group].word[2 * half + 1]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float scale =
          __shfl_sync(kWholeWarp, own_scale, lane_group() + 8 * i + lane_place() / 2 * 16);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        sums[group][2 * i] += scale * products[group][2 * i];
        sums[group][2 * i + 1] += scale * products[group][2 * i + 1];
      }
    }
  }

  // Adds the sums of the two blocks.
  __device__ static void finish(LaneSums& sums) {
    for (float& sum : sums) sum += __shfl_xor_sync(kWholeWarp, sum, 2);
  }

 private:
  static constexpr int32_t kLaneColumns = 32;

  __device__ static uint32_t scale_block() { return threadIdx.x % kLanes / kFewRowsOutputs; }
  __device__ static uint32_t* scale_word(uint32_t* stage, int i) {
    return stage + kFewRowsStageWords + i * kLanes + threadIdx.x % kLanes;
  }

  __device__ static float scale_of_lane(const Rows& rows, const Nf4Weight& weight, uint32_t* stage,
                                        int32_t first) {
    const uint32_t word = *scale_word(stage, 0);
    if constexpr (!kNested) return __uint_as_float(word);
    const uint32_t block = rows.scale + static_cast<uint32_t>(first / 64);
    const auto byte = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(weight.absmax_codes) & 3U);
    const uint32_t code = word >> ((block + byte) % 4 * 8) & 0xffU;
    // Two roundings, as the format defines it.
    return __fadd_rn(__fmul_rn(weight.nested_map[code], __uint_as_float(*scale_word(stage, 1))),
                     *weight.nested_offset);
  }
};

}  // namespace snug::backends::cuda
