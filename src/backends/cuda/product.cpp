#include "backends/cuda/product.h"

#include <algorithm>

#include "backends/cuda/needs/card.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

cudaDataType_t data_type(base::DType dtype) {
  return dtype == base::DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// As the library sees a row-major matrix: its transpose, column by column.
cublasLtMatrixLayout_t make_layout(const StoredMatrix& matrix, const CublasLt& library) {
  cublasLtMatrixLayout_t layout = nullptr;
  // The leading dimension of one row is free, but the library wants it no less than the column.
  const int64_t leading = std::max(matrix.stride, matrix.columns);
  library.check(library.functions().layout_create(&layout, data_type(matrix.dtype),
                                                  static_cast<uint64_t>(matrix.columns),
                                                  static_cast<uint64_t>(matrix.rows), leading),
                "cublasLtMatrixLayoutCreate");
  return layout;
}

}  // namespace

StoredMatrix stored_matrix(const program::Tensor& tensor) {
  StoredMatrix matrix{.dtype = tensor.dtype,
                      .rows = tensor.shape[0],
                      .columns = tensor.shape[1],
                      .stride = tensor.is_view() ? tensor.view.strides[0] : tensor.shape[1],
                      .alignment_bytes = kArenaAlignment};
  const int64_t offset = tensor.view.offset * base::size_of(tensor.dtype);
  while (offset % matrix.alignment_bytes != 0) matrix.alignment_bytes /= 2;
  return matrix;
}

StoredMatrix dense_matrix(base::DType dtype, int64_t rows, int64_t columns) {
  return {dtype, rows, columns, columns, kArenaAlignment};
}

Product::Product(const ProductShape& shape, const CublasLt& library)
    : library_(library), shape_(shape) {
  const CublasLtFunctions& functions = library.functions();
  library.check(functions.matmul_create(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                "cublasLtMatmulDescCreate");
  const auto set_operation = [&](cublasLtMatmulDescAttributes_t which, bool transpose) {
    const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    library.check(functions.matmul_set(description_, which, &operation, sizeof operation),
                  "cublasLtMatmulDescSetAttribute");
  };
  set_operation(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b);
  set_operation(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a);
  first_ = make_layout(shape.b, library);
  second_ = make_layout(shape.a, library);
  addend_ = make_layout(shape.addend, library);
  result_ = make_layout(shape.c, library);
  choose_algorithm();
}

Product::~Product() {
  const CublasLtFunctions& functions = library_.functions();
  for (cublasLtMatrixLayout_t layout : {first_, second_, addend_, result_})
    functions.layout_destroy(layout);
  functions.matmul_destroy(description_);
}

void Product::choose_algorithm() {
  const CublasLtFunctions& functions = library_.functions();
  cublasLtMatmulPreference_t preference = nullptr;
  library_.check(functions.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    library_.check(functions.preference_set(preference, which, &value, sizeof value),
                   "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<size_t>(library_.workspace_bytes()));
  const auto alignment = [](const StoredMatrix& matrix) {
    return static_cast<uint32_t>(matrix.alignment_bytes);
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(shape_.b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(shape_.a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(shape_.addend));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(shape_.c));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      functions.find_algorithms(library_.handle(), description_, first_, second_, addend_, result_,
                                preference, 1, &best, &found);
  functions.preference_destroy(preference);
  SNUG_CHECK(status == CUBLAS_STATUS_SUCCESS && found > 0,
             "cuBLASLt has no algorithm for ({} x {}) ({} x {}) in {} to {}: {}", shape_.a.rows,
             shape_.a.columns, shape_.b.rows, shape_.b.columns, base::name_of(shape_.a.dtype),
             base::name_of(shape_.c.dtype), functions.status_string(status));
  algorithm_ = best.algo;
}

void Product::multiply(const Addresses& addresses, void* workspace, cudaStream_t stream) const {
  const void* addend = shape_.beta == 0.0F ? addresses.c : addresses.addend;
  library_.check(
      library_.functions().matmul(library_.handle(), description_, &shape_.alpha, addresses.b,
                                  first_, addresses.a, second_, &shape_.beta, addend, addend_,
                                  addresses.c, result_, &algorithm_, workspace,
                                  static_cast<size_t>(library_.workspace_bytes()), stream),
      "cublasLtMatmul");
}

}  // namespace snug::backends::cuda
