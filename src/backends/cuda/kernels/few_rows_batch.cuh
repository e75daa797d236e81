// What a lane has in flight of a weight (few_rows_matrix.cu), and its products: a batch of steps,
// each of two reads of 16 bytes. As soon as a step is multiplied, its place is read into again, so
// that reads never pause. The order of inputs within a product of the tensor cores is free as long
// as both factors have the same, so each lane takes neighbours.
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

// A row of the weight that a lane reads: of output g, or g + 8 with `i` 1. Beyond the last output
// it reads that one again, whose sums nobody looks at.
__device__ inline int64_t row_of_lane(int64_t first_output, int64_t outputs, int i) {
  const int64_t output = first_output + lane_group() + 8 * i;
  return output < outputs ? output : outputs - 1;
}

// Rows of x, in shared memory or where they lie.
struct Inputs {
  const uint16_t* data;
  int64_t stride;
  int32_t rows;

  // Eight from `column` on; zeros of what is not there.
  __device__ Vector16 read(int row, int32_t column, int32_t end) const {
    if (row >= rows || column >= end) return {};
    return load_vector(data + row * stride + column);
  }
};

// Of a step a lane has eight inputs of each of its two outputs, and those of row g of x.
class Bf16Batch {
 public:
  using Weight = Bf16Weight;
  static constexpr int32_t kStepColumns = 32;
  static constexpr int kSteps = 4;

  // Where a lane's rows begin.
  struct Rows {
    const uint16_t* at[2];

    __device__ Rows(const Bf16Weight& weight, int64_t first_output, int64_t outputs, int64_t) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        at[i] = weight.data + row_of_lane(first_output, outputs, i) * weight.stride;
    }
  };

  __device__ void load(const Rows& rows, int step, int32_t first, int32_t end) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      weight_[step][i] = {};
      if (column(first, step) < end)
        weight_[step][i] = load_vector(rows.at[i] + column(first, 0) + step * kStepColumns);
    }
  }

  __device__ void multiply(const Rows&, const Inputs& x, const uint32_t*, int step, int32_t first,
                           int32_t end, LaneSums& sums) const {
    const Vector16 inputs = x.read(lane_group(), column(first, step), end);
#pragma unroll
    for (int word = 0; word < 4; word += 2) {
      const uint32_t a[4] = {weight_[step][0].word[word], weight_[step][1].word[word],
                             weight_[step][0].word[word + 1], weight_[step][1].word[word + 1]};
      multiply_add(sums, a, inputs.word[word], inputs.word[word + 1]);
    }
  }

  __device__ static void finish(LaneSums&) {}

 private:
  __device__ static int32_t column(int32_t first, int step) {
    return first + step * kStepColumns + lane_place() * kVectorElements;
  }

  Vector16 weight_[kSteps][2];
};

// What each byte of codes stands for, a pair of bf16: once for each lane, so that none waits for
// another. All threads of the block call it.
inline constexpr int kCodePairs = 256;
inline constexpr int64_t kPairTableBytes = int64_t{kCodePairs} * kLanes * 4;

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

// A scale of a block of 64: itself, or what it is made of.
template <bool kNested>
class Scale {
 public:
  __device__ void load(const Nf4Weight& from, uint64_t block) {
    if constexpr (kNested) {
      code_ = from.absmax_codes[block];
      value_ = from.nested_absmax[block / 256];
    } else {
      value_ = from.absmax[block];
    }
  }
  // Two roundings, as the format has it.
  __device__ float get(const Nf4Weight& from) const {
    if constexpr (!kNested) return value_;
    return __fadd_rn(__fmul_rn(from.nested_map[code_], value_), *from.nested_offset);
  }

 private:
  float value_ = 0.0F;
  uint32_t code_ = 0;
};

// Of a step a lane has 32 inputs of each of its two outputs: those of places 0 and 1 lie in one
// block of 64, those of 2 and 3 in the next. The sums of the two are kept apart, since their scales
// differ: columns 0 to 3 of the product are the rows of x with zeros in the place of the second
// block, columns 4 to 7 the same rows with zeros in the place of the first.
template <bool kNested>
class Nf4Batch {
 public:
  using Weight = Nf4Weight;
  static constexpr int32_t kStepColumns = 128;
  static constexpr int kSteps = 2;  // of more, three blocks' registers do not fit

  // Where a lane's rows begin, in elements of the weight.
  struct Rows {
    const Nf4Weight* weight;
    uint64_t at[2];

    __device__ Rows(const Nf4Weight& stored, int64_t first_output, int64_t outputs, int64_t columns)
        : weight(&stored) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        at[i] = static_cast<uint64_t>(row_of_lane(first_output, outputs, i) * columns);
    }
  };

  __device__ void load(const Rows& rows, int step, int32_t first, int32_t end) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      codes_[step][i] = {};
      scales_[step][i] = {};
      if (column(first, step) >= end) continue;
      const uint64_t element = rows.at[i] + static_cast<uint32_t>(column(first, 0));
      codes_[step][i] = load_vector(rows.weight->codes + element / 2 + step * kStepColumns / 2);
      scales_[step][i].load(*rows.weight, element / 64 + step * kStepColumns / 64);
    }
  }

  __device__ void multiply(const Rows& rows, const Inputs& x, const uint32_t* pairs, int step,
                           int32_t first, int32_t end, LaneSums& sums) const {
    const int row = lane_group() % kFewRows;
    const bool is_mine = (lane_group() < kFewRows) == (lane_place() < 2);
    const auto* mine = reinterpret_cast<const char*>(pairs + threadIdx.x % kLanes);
    // Bytes from a pair to the next: a number of the launch and no constant, because an address
    // then takes one instruction (multiply and add); of a constant it is made of shifts.
    const uint32_t apart = blockDim.x / kBatchWarps * 4;
    LaneSums products = {};
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      const Vector16 inputs =
          x.read(row, column(first, step) + word * kVectorElements, is_mine ? end : 0);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // A byte of the codes, with zeros above it.
        const auto pair = [&](int i, uint32_t byte) {
          const uint32_t place = 0x4440U + static_cast<uint32_t>(2 * half) + byte;
          const uint32_t code = __byte_perm(codes_[step][i].word[word], 0, place);
          return *reinterpret_cast<const uint32_t*>(mine + code * apart);
        };
        const uint32_t a[4] = {pair(0, 0), pair(1, 0), pair(0, 1), pair(1, 1)};
        multiply_add(products, a, inputs.word[2 * half], inputs.word[2 * half + 1]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float scale = scales_[step][i].get(*rows.weight);
      sums[2 * i] += scale * products[2 * i];
      sums[2 * i + 1] += scale * products[2 * i + 1];
    }
  }

  // The two blocks' sums.
  __device__ static void finish(LaneSums& sums) {
    for (float& sum : sums) sum += __shfl_xor_sync(0xffffffffU, sum, 2);
  }

 private:
  static constexpr int32_t kLaneColumns = 32;

  __device__ static int32_t column(int32_t first, int step) {
    return first + step * kStepColumns + lane_place() * kLaneColumns;
  }

  Vector16 codes_[kSteps][2];
  Scale<kNested> scales_[kSteps][2];
};

}  // namespace snug::backends::cuda
