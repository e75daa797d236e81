#include "backends/cuda/product/product_shape.h"

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/needs/row_stride.h"

namespace snug::backends::cuda {
namespace {

constexpr int64_t kVectorBytes = 16;

bool allows_vectors(const StoredMatrix& matrix) {
  return is_narrow(matrix.dtype) && matrix.alignment_bytes >= kVectorBytes &&
         matrix.columns % kVectorElements == 0 && matrix.stride % kVectorElements == 0;
}

bool is_thin(int64_t size) { return size <= kMaxThin && size % kVectorElements == 0; }

}  // namespace

StoredMatrix stored_matrix(const program::Tensor& tensor) {
  StoredMatrix matrix{.dtype = tensor.dtype,
                      .rows = tensor.shape[0],
                      .columns = tensor.shape[1],
                      .stride = row_stride(tensor),
                      .alignment_bytes = kArenaAlignment};
  const int64_t offset = tensor.view.offset * base::size_of(tensor.dtype);
  while (offset % matrix.alignment_bytes != 0) matrix.alignment_bytes /= 2;
  return matrix;
}

StoredMatrix dense_matrix(base::DType dtype, int64_t rows, int64_t columns) {
  return {dtype, rows, columns, columns, kArenaAlignment};
}

bool is_result_by_thin(const ProductShape& shape) {
  return shape.transpose_a && is_thin(shape.c.rows) && shape.c.rows < shape.c.columns;
}

bool is_thin_product(const ProductShape& shape) {
  if (!allows_vectors(shape.a) || !allows_vectors(shape.b)) return false;
  if (shape.a.dtype != shape.b.dtype) return false;
  if (shape.transpose_a && shape.transpose_b) return false;
  return is_thin(is_result_by_thin(shape) ? shape.c.rows : shape.c.columns);
}

int32_t most_launches(const ProductShape& shape, int64_t multiprocessors, int64_t workspace_bytes) {
  if (!is_thin_product(shape)) return 1;
  const bool by_thin = is_result_by_thin(shape);
  const int64_t wide = by_thin ? shape.c.columns : shape.c.rows;
  const int64_t thin = by_thin ? shape.c.rows : shape.c.columns;
  const int64_t depth = shape.transpose_a ? shape.a.rows : shape.a.columns;
  if (wide == 0) return 1;
  return thin_parts(wide, depth, thin, multiprocessors, workspace_bytes) > 1 ? 2 : 1;
}

}  // namespace snug::backends::cuda
