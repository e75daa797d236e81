#include "backends/cpu/rows.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "base/error.h"

namespace snug::backends::cpu {

Element element_of(base::DType dtype) {
  if (dtype == base::DType::f32) return kF32;
  if (dtype == base::DType::bf16) return kBf16;
  SNUG_CHECK(dtype == base::DType::f16, "the CPU backend computes in f32, bf16 and f16, not {}",
             base::name_of(dtype));
  return kF16;
}

Rows rows_of(const Buffer& buffer) {
  const int rank = buffer.shape.rank();
  Rows rows{.data = buffer.data,
            .element = element_of(buffer.dtype),
            .rows = buffer.shape.rows(),
            .columns = buffer.shape.columns(),
            .stride = buffer.shape.columns()};
  const auto stride_of = [&](int axis) { return buffer.strides[static_cast<size_t>(axis)]; };
  SNUG_CHECK(rank == 0 || rows.columns == 1 || stride_of(rank - 1) == 1,
             "elements of a row lie {} apart", stride_of(rank - 1));
  if (rank >= 2) rows.stride = stride_of(rank - 2);
  for (int axis = rank - 3; axis >= 0; --axis)
    SNUG_CHECK(
        buffer.shape[axis] == 1 || stride_of(axis) == stride_of(axis + 1) * buffer.shape[axis + 1],
        "rows of a tensor lie at more than one distance");
  return rows;
}

Rows flattened(const Rows& rows) {
  if (!rows.contiguous()) return rows;
  Rows flat = rows;
  flat.columns = rows.rows * rows.columns;
  flat.rows = 1;
  flat.stride = flat.columns;
  return flat;
}

Rows one_row_of(const Buffer& buffer) {
  const Rows flat = flattened(rows_of(buffer));
  SNUG_CHECK(flat.rows == 1, "a tensor is not contiguous");
  return flat;
}

float value_at(const void* data, Element element, int64_t index) {
  if (element == kF32) return static_cast<const float*>(data)[index];
  if (element == kBf16) return base::to_float(static_cast<const base::BFloat16*>(data)[index]);
  return base::to_float(static_cast<const base::Float16*>(data)[index]);
}

void set_value(void* data, Element element, int64_t index, float value) {
  if (element == kF32)
    static_cast<float*>(data)[index] = value;
  else if (element == kBf16)
    static_cast<base::BFloat16*>(data)[index] = base::to_bfloat16(value);
  else
    static_cast<base::Float16*>(data)[index] = base::to_float16(value);
}

const int32_t* integers_of(const Buffer& buffer) {
  SNUG_CHECK(buffer.dtype == base::DType::i32, "an integer tensor is {}",
             base::name_of(buffer.dtype));
  int64_t expected = 1;
  for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
    const int64_t stride = buffer.strides[static_cast<size_t>(axis)];
    SNUG_CHECK(buffer.shape[axis] == 1 || stride == expected, "integers lie {} apart", stride);
    expected *= buffer.shape[axis];
  }
  return buffer.as<const int32_t>();
}

void add_reduction_blocks(const Kernels& kernels, const float* partials, int64_t blocks,
                          const Rows& y, bool accumulate) {
  const Rows flat = flattened(y);
  const int64_t stride = reduction_stride(flat.columns);
  constexpr int64_t kColumnsPerTask = 256;
  parallel_ranges(flat.columns, kColumnsPerTask, [&](int64_t begin, int64_t end) {
    kernels.elementwise->add_partials[flat.element]({partials + begin, stride, blocks}, accumulate,
                                                    flat.at(0, begin), end - begin);
  });
}

void zero_rows(const Rows& rows) {
  const Rows flat = flattened(rows);
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / flat.columns);
  if (flat.rows == 1) {
    parallel_ranges(flat.columns, kElementsPerTask, [&](int64_t begin, int64_t end) {
      std::fill(flat.at(0, begin), flat.at(0, end), std::byte{0});
    });
    return;
  }
  parallel_ranges(flat.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      std::fill(flat.at(row), flat.at(row, flat.columns), std::byte{0});
  });
}

}  // namespace snug::backends::cpu
