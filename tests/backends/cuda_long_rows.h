// One operation of the emulated CUDA backend twice: over a few tokens, and over a row of so many
// that elements are counted beyond 2^32. The long row's memory is sparse, and of its launches the
// blocks at the ends run (block_fibers.h); its first and last tokens are the few, so what is made
// of them must have the same bits.
#pragma once

#include <span>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/launch_shape.h"
#include "block_fibers.h"
#include "operation_case.h"

namespace snug::backends::test {

inline constexpr int64_t kEndTokens = 4;  // at either end
inline constexpr int64_t kFewTokens = 2 * kEndTokens;
// Where a grid of 65,535 times up to 32 rows walks the tokens several times, blocks at its
// beginning make the last ones.
inline constexpr int64_t kLongTokens = int64_t{32} * cuda::kMaxGridY + kFewTokens;

// Memory of the device, which the host reaches through this alone; zeros at first.
class SparseTensor {
 public:
  // `stride`: elements from one row to the next.
  SparseTensor(const program::Shape& shape, program::DType dtype, int64_t stride);
  SparseTensor(const SparseTensor&) = delete;
  SparseTensor& operator=(const SparseTensor&) = delete;
  SparseTensor(SparseTensor&& other) noexcept : buffer_(other.buffer_) {
    other.buffer_.data = nullptr;
  }
  SparseTensor& operator=(SparseTensor&&) = delete;
  ~SparseTensor();

  const Buffer& buffer() const { return buffer_; }
  // Of a row, the elements from `column` on.
  std::vector<std::byte> bytes(int64_t row, int64_t column, int64_t count) const;
  void set_bytes(int64_t row, int64_t column, std::span<const std::byte> bytes);

 private:
  std::byte* at(int64_t row, int64_t column) const;

  Buffer buffer_;
};

class LongRow {
 public:
  using DeviceRows = size_t;
  // `ends`: blocks that run at either end of each axis of a grid.
  explicit LongRow(unsigned ends) : ends_(ends) {}

  // A row for each token, `gap` elements after the one before.
  DeviceRows by_token(int64_t columns, program::DType dtype, int64_t gap = 0);
  // A row of tokens for each head; for one alone without heads.
  DeviceRows by_head(int64_t heads, program::DType dtype);
  DeviceRows value_by_token(program::DType dtype);
  // The same shape in both.
  DeviceRows shared(const program::Shape& shape, program::DType dtype);

  // The same values for the few tokens and the ends of the row.
  void fill_normal(DeviceRows operand);
  void fill_integers(DeviceRows operand, int64_t low, int64_t high);  // inclusive
  // A value by token: of the tokens between the ends.
  void fill_between(DeviceRows operand, int32_t value);
  // A shared operand of i32.
  void set(DeviceRows operand, const std::vector<int32_t>& few, const std::vector<int32_t>& whole);

  void run(const program::Attributes& attributes, const std::vector<DeviceRows>& reads,
           const std::vector<DeviceRows>& writes, std::span<const int32_t> extent = {});
  // The same by kernels that `launch` starts, given a function from an operand to its buffer.
  template <typename F>
  void run_kernels(const F& launch) {
    launch([&](DeviceRows operand) { return operands_[operand].few.buffer(); });
    const cuda_emulator::OnlyEnds only_ends(ends_);
    launch([&](DeviceRows operand) { return operands_[operand].whole.buffer(); });
  }
  // Fails the test where the bits of the few tokens are not those of the row's ends, or all zeros.
  void expect_same(DeviceRows operand) const;

 private:
  // Elements of the few tokens, and where the long row has them.
  struct Piece {
    int64_t few_row, few_column, whole_row, whole_column, count;
  };
  struct Both {
    std::vector<Piece> pieces;
    SparseTensor few, whole;
  };
  DeviceRows add(Both both);
  void fill(DeviceRows operand, const Values& values);
  void run_one(SparseTensor Both::*which, const program::Attributes& attributes,
               const std::vector<DeviceRows>& reads, const std::vector<DeviceRows>& writes,
               std::span<const int32_t> extent);

  unsigned ends_;
  Random random_{test_seed()};
  cuda::CudaBackend backend_{{.chooses_by_timing = false}};
  std::vector<Both> operands_;
};

}  // namespace snug::backends::test
