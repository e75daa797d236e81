#include "backends/cpu/rows.h"

#include "backends/cpu/kernels.h"
#include "base/error.h"

namespace snug::backends::cpu {

Element element_of(base::DType dtype) {
  SNUG_CHECK(dtype == base::DType::f32 || dtype == base::DType::bf16,
             "the CPU backend computes in f32 and bf16, not {}", base::name_of(dtype));
  return dtype == base::DType::f32 ? kF32 : kBf16;
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

}  // namespace snug::backends::cpu
