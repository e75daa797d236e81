// The part of a weight that a lane has in flight (few_rows_matrix.cu), and its products: a batch of
// steps, each of two reads of 16 bytes. As soon as a step is multiplied, its registers are read
// into again, so that reads never pause. The order of inputs within a tensor core product is
// arbitrary as long as both factors have the same, so each lane takes adjacent inputs.
#pragma once

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/warp_matrix.cuh"
#include "backends/cuda/product/kernels/few_rows_matrix.h"
#include "backends/cuda/product/kernels/nf4.cuh"

namespace snug::backends::cuda {

inline constexpr uint32_t kBatchWarps = 8;  // the warps in a block
// A lane's part of the sums: outputs g and g + 8, for two rows each (warp_matrix.cuh).
using LaneSums = float[4];

__device__ inline int lane_group() { return static_cast<int>(threadIdx.x % kLanes / 4); }
__device__ inline int lane_place() { return static_cast<int>(threadIdx.x % 4); }

// The row of the weight that a lane reads: that of output g or, if `i` is 1, g + 8. Beyond the last
// output it reads the last one again, and those sums are not used.
__device__ inline int64_t row_of_lane(int64_t first_output, int64_t outputs, int i) {
  const int64_t output = first_output + lane_group() + 8 * i;
  return output < outputs ? output : outputs - 1;
}

// In a step a lane has inputs of each of its two outputs, from `column` on, and those of one row of
// x, or zeros. Here rows of x are in shared memory, with zeros after each and after all rows.
class SharedInputs {
 public:
  // `row` is at least `rows` where the lane has zeros.
  __device__ SharedInputs(const uint16_t* shared, int64_t columns, int rows, int row,
                          int32_t column)
      : apart_(row < rows ? 1 : 0),
        at_(shared + (row < rows ? row : rows) * few_rows_stride(columns) + apart_ * column) {}

  // Reads eight of the lane's inputs, at `offset` from its first one, of a batch that begins at
  // `first`.
  __device__ Vector16 read(int32_t first, int32_t offset, int32_t) const {
    return load_vector(at_ + first * apart_ + offset);
  }

 private:
  int32_t apart_;
  const uint16_t* at_;
};

// Reads rows of x in place.
class GlobalInputs {
 public:
  __device__ GlobalInputs(const DeviceRows& x, int rows, int row, int32_t column)
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

// In a step a lane has eight inputs of each of its two outputs, and those of row g of x.
template <typename Format>
class NarrowBatch {
 public:
  using Weight = NarrowWeight;
  using InputFormat = Format;
  static constexpr int32_t kStepColumns = 32;
  static constexpr int kSteps = 4;

  // The addresses of a lane's rows.
  struct Rows {
    const uint16_t* at[2];

    __device__ Rows(const NarrowWeight& weight, int64_t first_output, int64_t outputs, int64_t) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        at[i] = weight.data + row_of_lane(first_output, outputs, i) * weight.stride + lane_column();
    }
  };

  __device__ static int lane_row() { return lane_group(); }
  __device__ static int32_t lane_column() { return lane_place() * kVectorElements; }

  __device__ void load(const Rows& rows, const NarrowWeight&, int step, int32_t first,
                       int32_t end) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      weight_[step][i] = {};
      if (first + step * kStepColumns + lane_column() < end)
        weight_[step][i] = load_passing_vector(rows.at[i] + first + step * kStepColumns);
    }
  }

  template <typename Inputs>
  __device__ void multiply(const NarrowWeight&, const Inputs& x, const uint32_t*, int step,
                           int32_t first, int32_t end, LaneSums& sums) const {
    const Vector16 inputs = x.read(first, step * kStepColumns, end);
#pragma unroll
    for (int word = 0; word < 4; word += 2) {
      const uint32_t a[4] = {weight_[step][0].word[word], weight_[step][1].word[word],
                             weight_[step][0].word[word + 1], weight_[step][1].word[word + 1]};
      multiply_add(Format(), sums, a, inputs.word[word], inputs.word[word + 1]);
    }
  }

  __device__ static void finish(LaneSums&) {}

 private:
  Vector16 weight_[kSteps][2];
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

// The scale of a block of 64: itself, or its nested code with the parameters to decode it.
template <bool kNested>
class Scale {
 public:
  __device__ void load(const Nf4Weight& from, uint32_t block) {
    if constexpr (kNested) {
      code_ = from.absmax_codes[block];
      value_ = from.nested_absmax[block / 256];
    } else {
      value_ = from.absmax[block];
    }
  }
  // Two roundings, as the format defines it.
  __device__ float get(const Nf4Weight& from) const {
    if constexpr (!kNested) return value_;
    return __fadd_rn(__fmul_rn(from.nested_map[code_], value_), *from.nested_offset);
  }

 private:
  float value_ = 0.0F;
  uint32_t code_ = 0;
};

// In a step a lane has 32 inputs of each of its two outputs: those of lane places 0 and 1 are in
// one block of 64, those of 2 and 3 in the next. The sums for the two blocks are kept apart, since
// their scales differ: columns 0 to 3 of the product are the rows of x with zeros for the second
// block, columns 4 to 7 the same rows with zeros for the first.
template <typename Format, bool kNested>
class Nf4Batch {
 public:
  using Weight = Nf4Weight;
  using InputFormat = Format;
  static constexpr int32_t kStepColumns = 128;
  static constexpr int kSteps = 2;  // with more, three blocks no longer fit in the registers

  // The beginnings of a lane's rows: their codes, and the number of their first block of 64.
  struct Rows {
    const uint8_t* codes[2];
    uint32_t block[2];

    __device__ Rows(const Nf4Weight& weight, int64_t first_output, int64_t outputs,
                    int64_t columns) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int64_t element = row_of_lane(first_output, outputs, i) * columns + lane_column();
        codes[i] = weight.codes + element / 2;
        block[i] = static_cast<uint32_t>(element / 64);
      }
    }
  };

  // The lane's row of x, or the zeros after all rows where the lane's inputs belong to the other
  // block.
  __device__ static int lane_row() {
    const bool is_mine = (lane_group() < kFewRows) == (lane_place() < 2);
    return is_mine ? lane_group() % kFewRows : kFewRows;
  }
  __device__ static int32_t lane_column() { return lane_place() * kLaneColumns; }

  __device__ void load(const Rows& rows, const Nf4Weight& weight, int step, int32_t first,
                       int32_t end) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      codes_[step][i] = {};
      scales_[step][i] = {};
      if (first + step * kStepColumns + lane_column() >= end) continue;
      codes_[step][i] = load_passing_vector(rows.codes[i] + first / 2 + step * kStepColumns / 2);
      scales_[step][i].load(
          weight, rows.block[i] + static_cast<uint32_t>(first / 64 + step * kStepColumns / 64));
    }
  }

  template <typename Inputs>
  __device__ void multiply(const Nf4Weight& weight, const Inputs& x, const uint32_t* pairs,
                           int step, int32_t first, int32_t end, LaneSums& sums) const {
    // The lane's address of the pair for a byte of codes is `mine` + kPairBytes * byte.
    const uint32_t mine = shared_address(pairs) + threadIdx.x % kLanes * 4;
    float scales[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) scales[i] = scales_[step][i].get(weight);
    LaneSums products = {};
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      const Vector16 inputs = x.read(first, step * kStepColumns + word * kVectorElements, end);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto pair = [&](int i, int byte) {
          return load_shared_word(
              __dp4a(codes_[step][i].word[word], kPairBytes << (16 * half + 8 * byte), mine));
        };
        const uint32_t a[4] = {pair(0, 0), pair(1, 0), pair(0, 1), pair(1, 1)};
        multiply_add(Format(), products, a, inputs.word[2 * half], inputs.word[2 * half + 1]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums[2 * i] += scales[i] * products[2 * i];
      sums[2 * i + 1] += scales[i] * products[2 * i + 1];
    }
  }

  // Adds the sums of the two blocks.
  __device__ static void finish(LaneSums& sums) {
    for (float& sum : sums) sum += __shfl_xor_sync(0xffffffffU, sum, 2);
  }

 private:
  static constexpr int32_t kLaneColumns = 32;

  Vector16 codes_[kSteps][2];
  Scale<kNested> scales_[kSteps][2];
};

}  // namespace snug::backends::cuda
