// A float tensor as the kinds of the CPU backend see it: rows of contiguous elements that are
// `stride` apart (for views of wider tensors). Also loops over several tensors of one shape on all
// threads.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/kernels/element.h"
#include "backends/cpu/parallel.h"
#include "backends/invocation.h"

namespace snug::backends::cpu {

// f32, bf16 or f16; anything else fails a CHECK.
Element element_of(base::DType dtype);
// One element of an array; `value` is rounded to nearest.
float value_at(const void* data, Element element, int64_t index);
void set_value(void* data, Element element, int64_t index, float value);

struct Rows {
  std::byte* data = nullptr;
  Element element = kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;  // elements from one row to the next

  int64_t element_bytes() const { return element == kF32 ? 4 : 2; }
  std::byte* at(int64_t row, int64_t column = 0) const {
    return data + (row * stride + column) * element_bytes();
  }
  bool contiguous() const { return stride == columns || rows <= 1; }
};

// Requires contiguous elements within a row and a constant distance between rows; fails a CHECK
// otherwise.
Rows rows_of(const Buffer& buffer);
// The rows of rows_of, joined into one row where they have no gaps.
Rows flattened(const Rows& rows);
// A tensor without gaps as one row; any other fails a CHECK.
Rows one_row_of(const Buffer& buffer);
// The first element of a contiguous i32 tensor.
const int32_t* integers_of(const Buffer& buffer);

// Elements in a task: enough to hide the cost of starting it, few enough to balance the threads. A
// multiple of the blocks of random_bits.h.
inline constexpr int64_t kElementsPerTask = 16384;

void zero_rows(const Rows& rows);

// Calls f(pointers, first, n) over runs of n elements of tensors of one shape: `first` is the
// row-major index of a run's first element, and `pointers` has that element's address in each
// tensor.
template <size_t kCount, typename F>
void parallel_elements(std::array<Rows, kCount> tensors, F&& f) {
  bool contiguous = true;
  for (const Rows& tensor : tensors) contiguous = contiguous && tensor.contiguous();
  if (contiguous)
    for (Rows& tensor : tensors) tensor = flattened(tensor);
  const int64_t columns = tensors[0].columns;
  const int64_t runs_per_row = ceil_div(columns, kElementsPerTask);
  const int64_t rows_per_task =
      runs_per_row > 1 ? 1 : std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(columns, 1));
  const auto run = [&](int64_t row, int64_t column) {
    std::array<std::byte*, kCount> pointers;
    for (size_t i = 0; i < kCount; ++i) pointers[i] = tensors[i].at(row, column);
    f(pointers, row * columns + column, std::min(kElementsPerTask, columns - column));
  };
  parallel_for(ceil_div(tensors[0].rows, rows_per_task) * runs_per_row, [&](int64_t task) {
    const int64_t begin = task / runs_per_row * rows_per_task;
    const int64_t end = std::min(tensors[0].rows, begin + rows_per_task);
    for (int64_t row = begin; row < end; ++row) run(row, task % runs_per_row * kElementsPerTask);
  });
}

// Sums over rows are made in blocks of this many rows, with one partial sum per block; there are at
// most 64 blocks.
constexpr int64_t reduction_block_rows(int64_t rows) {
  return std::max<int64_t>(16, ceil_div(rows, 64));
}
constexpr int64_t reduction_blocks(int64_t rows) {
  return ceil_div(rows, reduction_block_rows(rows));
}
// The distance in floats between the partial sums of two blocks, in whole cache lines.
constexpr int64_t reduction_stride(int64_t columns) { return ceil_div(columns, 16) * 16; }
constexpr int64_t reduction_bytes(int64_t rows, int64_t columns) {
  return reduction_blocks(rows) * reduction_stride(columns) * int64_t{sizeof(float)};
}

struct Kernels;
// y (columns) = [y +] the sum of the partial sums of all blocks.
void add_reduction_blocks(const Kernels& kernels, const float* partials, int64_t blocks,
                          const Rows& y, bool accumulate);

}  // namespace snug::backends::cpu
