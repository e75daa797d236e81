#include "backends/cuda/product/matrices.h"

#include <algorithm>

#include "base/error.h"

namespace snug::backends::cuda {
namespace {

bool allows_vectors(const Matrix& matrix) {
  return is_aligned(matrix.operand.data) && matrix.columns % kVectorElements == 0 &&
         (matrix.rows <= 1 || matrix.operand.stride % kVectorElements == 0);
}

void require_dense(const Buffer& buffer, base::DType dtype) {
  SNUG_CHECK(buffer.dtype == dtype, "a tensor is {} instead of {}", base::name_of(buffer.dtype),
             base::name_of(dtype));
  int64_t expected = 1;
  for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
    const int64_t stride = buffer.strides[static_cast<size_t>(axis)];
    SNUG_CHECK(buffer.shape[axis] == 1 || stride == expected, "elements lie {} apart", stride);
    expected *= buffer.shape[axis];
  }
}

}  // namespace

ElementFormat format_of(base::DType dtype) {
  switch (dtype) {
    case base::DType::f32:
      return ElementFormat::f32;
    case base::DType::bf16:
      return ElementFormat::bf16;
    case base::DType::f16:
      return ElementFormat::f16;
    default:
      SNUG_CHECK(false, "the CUDA backend computes in f32, bf16 and f16, not {}",
                 base::name_of(dtype));
      return ElementFormat::f32;
  }
}

Matrix matrix_of(const Buffer& buffer) {
  const int rank = buffer.shape.rank();
  const auto stride_of = [&](int axis) { return buffer.strides[static_cast<size_t>(axis)]; };
  const int64_t columns = buffer.shape.columns();
  Matrix matrix{.operand = {buffer.data, columns, format_of(buffer.dtype)},
                .rows = buffer.shape.rows(),
                .columns = columns};
  SNUG_CHECK(rank == 0 || columns == 1 || stride_of(rank - 1) == 1,
             "elements of a row lie {} apart", stride_of(rank - 1));
  if (rank >= 2) matrix.operand.stride = stride_of(rank - 2);
  for (int axis = rank - 3; axis >= 0; --axis)
    SNUG_CHECK(
        buffer.shape[axis] == 1 || stride_of(axis) == stride_of(axis + 1) * buffer.shape[axis + 1],
        "rows of a tensor lie at more than one distance");
  return matrix;
}

const int32_t* integers_of(const Buffer& buffer) {
  require_dense(buffer, base::DType::i32);
  return buffer.as<const int32_t>();
}

uint8_t* bytes_of(const Buffer& buffer) {
  require_dense(buffer, base::DType::u8);
  return buffer.as<uint8_t>();
}

float* floats_of(const Buffer& buffer) {
  require_dense(buffer, base::DType::f32);
  return buffer.as<float>();
}

Walk walk_rows(std::initializer_list<const Matrix*> matrices) {
  const Matrix& first = **matrices.begin();
  const bool vectors = std::all_of(matrices.begin(), matrices.end(),
                                   [](const Matrix* matrix) { return allows_vectors(*matrix); });
  return {first.rows, first.columns, vectors};
}

Walk walk_flat(std::initializer_list<Matrix*> matrices) {
  const bool flat = std::all_of(matrices.begin(), matrices.end(),
                                [](const Matrix* matrix) { return matrix->contiguous(); });
  bool vectors = true;
  for (Matrix* matrix : matrices) {
    if (flat) {
      matrix->columns *= matrix->rows;
      matrix->rows = 1;
      matrix->operand.stride = matrix->columns;
    }
    vectors = vectors && allows_vectors(*matrix);
  }
  const Matrix& first = **matrices.begin();
  return {first.rows, first.columns, vectors};
}

}  // namespace snug::backends::cuda
