// What a lane has in flight of a weight (few_rows_matrix.cu), and its products: a batch of steps,
// each of two copies of 16 bytes to shared memory. As soon as a step is multiplied, its place is
// copied into again, so that copies never pause. They are copies, not loads: of loads in registers
// a warp waits for all that it has under way, of copies for the oldest. A lane reads what it has
// copied itself, so no lane waits for another. The order of inputs within a product of the tensor
// cores is free as long as both factors have the same, so each lane takes neighbours.
#pragma once

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/few_rows_matrix.h"
#include "backends/cuda/kernels/nf4.cuh"
#include "backends/cuda/kernels/warp_matrix.cuh"

namespace snug::backends::cuda {

inline constexpr uint32_t kBatchWarps = 8;  // of a block
// Of a lane: outputs g and g + 8 of two rows each (warp_matrix.cuh).
using LaneSums = float[4];

__device__ inline int lane_group() { return static_cast<int>(threadIdx.x % kLanes / 4); }
__device__ inline int lane_place() { return static_cast<int>(threadIdx.x % 4); }

// Where a lane's copies of a step lie, one for each of its two outputs: those of a warp side by
// side.
class LaneRing {
 public:
  static constexpr int64_t kStepBytes = int64_t{2} * kLanes * 16;

  // `shared`: of the block, of each of its warps `steps` steps.
  __device__ LaneRing(uint16_t* shared, int steps)
      : at_(shared + (threadIdx.x / kLanes * steps * (kStepBytes / 2)) +
            threadIdx.x % kLanes * kVectorElements),
        address_(kept(shared_address(at_))) {}

  __device__ void begin(int step, int i, const void* from, bool zeros) const {
    begin_passing_copy(at_ + (step * 2 + i) * kLanes * kVectorElements, from, zeros);
  }
  __device__ Vector16 read(int step, int i) const {
    return load_shared_vector(address_ + static_cast<uint32_t>((step * 2 + i) * kLanes * 16));
  }

 private:
  uint16_t* at_;
  uint32_t address_;
};

// A row of the weight that a lane reads: of output g, or g + 8 with `i` 1. Beyond the last output
// it reads that one again, whose sums nobody looks at.
__device__ inline int64_t row_of_lane(int64_t first_output, int64_t outputs, int i) {
  const int64_t output = first_output + lane_group() + 8 * i;
  return output < outputs ? output : outputs - 1;
}

// Of a step a lane has inputs of each of its two outputs from `column` on, and those of one row of
// x, or zeros. Rows of x in shared memory, with zeros behind each and behind all.
class SharedInputs {
 public:
  // `row`: at least `rows` where the lane has zeros.
  __device__ SharedInputs(const uint16_t* shared, int64_t columns, int rows, int row,
                          int32_t column)
      : apart_(row < rows ? 1 : 0),
        address_(kept(shared_address(shared + (row < rows ? row : rows) * few_rows_stride(columns) +
                                     apart_ * column))) {
    apart_ = static_cast<int32_t>(kept(static_cast<uint32_t>(apart_ * 2)));
  }

  // Eight of the lane's inputs of a batch that begins at `first`, from `offset` of the lane's
  // first.
  __device__ Vector16 read(int32_t first, int32_t offset, int32_t) const {
    return load_shared_vector(address_ + static_cast<uint32_t>(first * apart_ + offset * 2));
  }

 private:
  int32_t apart_;  // bytes from one input to the next, or none
  uint32_t address_;
};

// Where they lie.
class GlobalInputs {
 public:
  __device__ GlobalInputs(const Operand& x, int rows, int row, int32_t column)
      : at_(static_cast<const uint16_t*>(x.data) + row * x.stride + column),
        column_(column),
        is_there_(row < rows) {}

  __device__ Vector16 read(int32_t first, int32_t offset, int32_t end) const {
    if (!is_there_ || column_ + first + offset >= end) return {};
    return load_vector(at_ + first + offset);
  }

 private:
  const uint16_t* at_;
  int32_t column_;
  bool is_there_;
};

// Of a step a lane has eight inputs of each of its two outputs, and those of row g of x.
template <int kDepth>
class Bf16Batch {
 public:
  using Weight = Bf16Weight;
  static constexpr bool kCodes = false;
  static constexpr int32_t kStepColumns = 32;
  static constexpr int kSteps = kDepth;

  // What all steps of a tile share.
  struct Scales {
    __device__ explicit Scales(const Bf16Weight&) {}
  };

  // Where a lane's rows begin.
  struct Rows {
    const uint16_t* at[2];

    __device__ Rows(const Bf16Weight& weight, int64_t first_output, int64_t outputs, int64_t) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        at[i] = weight.data + row_of_lane(first_output, outputs, i) * weight.stride + lane_column();
    }
  };

  __device__ static int lane_row() { return lane_group(); }
  __device__ static int32_t lane_column() { return lane_place() * kVectorElements; }

  __device__ explicit Bf16Batch(uint16_t* ring) : ring_(ring, kSteps) {}

  __device__ void load_scales(const Rows&, int32_t, int32_t) {}
  __device__ void begin(const Scales&) {}

  __device__ void load(const Rows& rows, int step, int32_t first, int32_t end) const {
    const int32_t column = first + step * kStepColumns;
    const bool beyond = column + lane_column() >= end;
#pragma unroll
    for (int i = 0; i < 2; ++i) ring_.begin(step, i, rows.at[i] + (beyond ? 0 : column), beyond);
  }

  template <typename Inputs>
  __device__ void multiply(const Inputs& x, uint32_t, int step, int32_t first, int32_t end,
                           LaneSums& sums) const {
    const Vector16 inputs = x.read(first, step * kStepColumns, end);
    const Vector16 weight[2] = {ring_.read(step, 0), ring_.read(step, 1)};
#pragma unroll
    for (int word = 0; word < 4; word += 2) {
      const uint32_t a[4] = {weight[0].word[word], weight[1].word[word], weight[0].word[word + 1],
                             weight[1].word[word + 1]};
      multiply_add(sums, a, inputs.word[word], inputs.word[word + 1]);
    }
  }

  __device__ static void finish(LaneSums&) {}

 private:
  LaneRing ring_;
};

// What each byte of codes stands for, a pair of bf16: once for each lane, so that none waits for
// another. All threads of the block call it.
inline constexpr int kCodePairs = 256;
inline constexpr uint32_t kPairBytes = uint32_t{kLanes} * 4;
inline constexpr int64_t kPairTableBytes = int64_t{kCodePairs} * kPairBytes;

__device__ inline void share_pairs(const Nf4Values& values, uint32_t* table) {
  constexpr int kVectors = kLanes / 4;  // of a byte's copies
  for (auto byte = static_cast<int>(threadIdx.x); byte < kCodePairs;
       byte += static_cast<int>(blockDim.x)) {
    const uint32_t pair = float_to_bf16(values.at[byte >> 4]) | float_to_bf16(values.at[byte & 15])
                                                                    << 16;
    // Neighbouring threads begin at other copies: they meet different banks.
#pragma unroll
    for (int i = 0; i < kVectors; ++i)
      store_vector(table + byte * kLanes + (i + byte) % kVectors * 4, {{pair, pair, pair, pair}});
  }
}

// Of a step a lane has 32 inputs of each of its two outputs: those of places 0 and 1 lie in one
// block of 64, those of 2 and 3 in the next. The sums of the two are kept apart, since their scales
// differ: columns 0 to 3 of the product are the rows of x with zeros in the place of the second
// block, columns 4 to 7 the same rows with zeros in the place of the first. Of the step's 32 scales
// (16 outputs, two blocks) a lane fetches one, and those who need it take it from there.
template <bool kNested, int kDepth>
class Nf4Batch {
 public:
  using Weight = Nf4Weight;
  static constexpr bool kCodes = true;
  static constexpr int32_t kStepColumns = 128;
  static constexpr int kSteps = kDepth;

  // What all steps of a tile share: how nested scales are decoded.
  struct Scales {
    const float* map = nullptr;
    float offset = 0.0F;

    __device__ explicit Scales(const Nf4Weight& weight) {
      if constexpr (kNested) {
        map = weight.nested_map;
        offset = *weight.nested_offset;
      }
    }
  };

  // Where a lane's rows begin: their codes, and the scale that it fetches.
  struct Rows {
    const uint8_t* codes;
    uint32_t apart;      // from the codes of the first row to those of the second
    uint32_t block;      // whose scale it is
    const void* scales;  // of all blocks
    const float* nested = nullptr;

    __device__ Rows(const Nf4Weight& weight, int64_t first_output, int64_t outputs,
                    int64_t columns) {
      const int64_t row = row_of_lane(first_output, outputs, 0);
      codes = weight.codes + (row * columns + lane_column()) / 2;
      apart = static_cast<uint32_t>((row_of_lane(first_output, outputs, 1) - row) * columns / 2);
      const int64_t output = first_output + threadIdx.x % kLanes / 2;
      block = static_cast<uint32_t>((output < outputs ? output : outputs - 1) * (columns / 64)) +
              threadIdx.x % 2;
      scales = weight.absmax;
      if constexpr (kNested) {
        scales = weight.absmax_codes;
        nested = weight.nested_absmax;
      }
    }
  };

  // Zeros, beyond all rows, where the other four groups have the lane's block.
  __device__ static int lane_row() {
    const bool is_mine = (lane_group() < kFewRows) == (lane_place() < 2);
    return is_mine ? lane_group() % kFewRows : kFewRows;
  }
  __device__ static int32_t lane_column() { return lane_place() * kLaneColumns; }

  __device__ explicit Nf4Batch(uint16_t* ring) : ring_(ring, kSteps) {}

  // The lane's scales of the batch that begins at `first`.
  __device__ void load_scales(const Rows& rows, int32_t first, int32_t end) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int32_t column = first + step * kStepColumns;
      loaded_[step] = 0.0F;
      loaded_codes_[step] = 0;
      if (column + static_cast<int32_t>(threadIdx.x % 2) * 64 >= end) continue;
      const uint32_t block = rows.block + static_cast<uint32_t>(column) / 64;
      if constexpr (kNested) {
        loaded_codes_[step] = static_cast<const uint8_t*>(rows.scales)[block];
        loaded_[step] = rows.nested[block / 256];
      } else {
        loaded_[step] = static_cast<const float*>(rows.scales)[block];
      }
    }
  }

  // Takes the scales that were loaded for the batch that comes now, all of them before any of the
  // next batch is asked for.
  __device__ void begin(const Scales& scales) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      scale_[step] = loaded_[step];
      // Two roundings, as the format has it.
      if constexpr (kNested)
        scale_[step] =
            __fadd_rn(__fmul_rn(scales.map[loaded_codes_[step]], loaded_[step]), scales.offset);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      scale_[step] = __uint_as_float(kept(__float_as_uint(scale_[step])));
  }

  __device__ void load(const Rows& rows, int step, int32_t first, int32_t end) const {
    const int32_t column = first + step * kStepColumns;
    const bool beyond = column + lane_column() >= end;
    const uint8_t* at = rows.codes + (beyond ? 0 : column / 2);
    ring_.begin(step, 0, at, beyond);
    ring_.begin(step, 1, at + rows.apart, beyond);
  }

  // `pairs`: the lane's copy of what byte 0 stands for; that of another byte lies kPairBytes times
  // the byte further.
  template <typename Inputs>
  __device__ void multiply(const Inputs& x, uint32_t pairs, int step, int32_t first, int32_t end,
                           LaneSums& sums) const {
    const Vector16 codes[2] = {ring_.read(step, 0), ring_.read(step, 1)};
    LaneSums products[2] = {};  // of two chains, neither of which waits for the other
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      const Vector16 inputs = x.read(first, step * kStepColumns + word * kVectorElements, end);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto pair = [&](int i, int byte) {
          return load_shared_word(
              __dp4a(codes[i].word[word], kPairBytes << (16 * half + 8 * byte), pairs));
        };
        const uint32_t a[4] = {pair(0, 0), pair(1, 0), pair(0, 1), pair(1, 1)};
        multiply_add(products[half], a, inputs.word[2 * half], inputs.word[2 * half + 1]);
      }
    }
    const int source = 2 * lane_group() + lane_place() / 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float scale = __shfl_sync(0xffffffffU, scale_[step], source + 16 * i);
      sums[2 * i] += scale * (products[0][2 * i] + products[1][2 * i]);
      sums[2 * i + 1] += scale * (products[0][2 * i + 1] + products[1][2 * i + 1]);
    }
  }

  // The two blocks' sums.
  __device__ static void finish(LaneSums& sums) {
    for (float& sum : sums) sum += __shfl_xor_sync(0xffffffffU, sum, 2);
  }

 private:
  static constexpr int32_t kLaneColumns = 32;

  LaneRing ring_;
  float scale_[kSteps];
  float loaded_[kSteps];
  uint32_t loaded_codes_[kSteps];
};

}  // namespace snug::backends::cuda
