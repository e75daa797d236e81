#include "backends/cuda/product/product.h"

#include <algorithm>

#include "backends/cuda/device/cuda_check.h"
#include "backends/cuda/device/kernel_loading.h"
#include "backends/cuda/device/launch_count.h"
#include "backends/cuda/product/thin_product.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

// The most algorithms of the library that are timed. According to everything published, the fastest
// is among this many; each costs a few runs.
constexpr int kMaxOffers = 8;

cudaDataType_t data_type(base::DType dtype) {
  if (dtype == base::DType::f16) return CUDA_R_16F;
  return dtype == base::DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// The library's layout of a row-major matrix: its transpose, column by column.
cublasLtMatrixLayout_t make_layout(const StoredMatrix& matrix, const CublasLt& library) {
  cublasLtMatrixLayout_t layout = nullptr;
  // The leading dimension of a single row is arbitrary, but the library requires at least the
  // column's length.
  const int64_t leading = std::max(matrix.stride, matrix.columns);
  library.check(library.functions().layout_create(&layout, data_type(matrix.dtype),
                                                  static_cast<uint64_t>(matrix.columns),
                                                  static_cast<uint64_t>(matrix.rows), leading),
                "cublasLtMatrixLayoutCreate");
  return layout;
}

}  // namespace

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
  find_offers();
  algorithm_ = offers_.front();
  thin_ = thin_form(shape);
  if (thin_) offers_.push_back({.is_own = true});
}

Product::~Product() {
  const CublasLtFunctions& functions = library_.functions();
  for (cublasLtMatrixLayout_t layout : {first_, second_, addend_, result_})
    functions.layout_destroy(layout);
  functions.matmul_destroy(description_);
}

void Product::find_offers() {
  const CublasLtFunctions& functions = library_.functions();
  cublasLtMatmulPreference_t preference = nullptr;
  library_.check(functions.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    library_.check(functions.preference_set(preference, which, &value, sizeof value),
                   "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<size_t>(library_.workspace_bytes()));
  // Allows only algorithms that add partial sums in f32 and in a fixed order, or that have no
  // partial sums.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const auto alignment = [](const StoredMatrix& matrix) {
    return static_cast<uint32_t>(matrix.alignment_bytes);
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(shape_.b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(shape_.a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(shape_.addend));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(shape_.c));
  std::vector<cublasLtMatmulHeuristicResult_t> results(kMaxOffers);
  int found = 0;
  const cublasStatus_t status =
      functions.find_algorithms(library_.handle(), description_, first_, second_, addend_, result_,
                                preference, kMaxOffers, results.data(), &found);
  functions.preference_destroy(preference);
  results.resize(static_cast<size_t>(std::max(found, 0)));
  for (const cublasLtMatmulHeuristicResult_t& result : results)
    if (result.state == CUBLAS_STATUS_SUCCESS && fits(result))
      offers_.push_back({.of_library = result.algo});
  if (status != CUBLAS_STATUS_SUCCESS || offers_.empty())
    base::throw_user_error(
        "cuBLASLt has no algorithm for ({} x {}) ({} x {}) in {} to {}: {}. Set 'backend: cpu'.",
        shape_.a.rows, shape_.a.columns, shape_.b.rows, shape_.b.columns,
        base::name_of(shape_.a.dtype), base::name_of(shape_.c.dtype),
        functions.status_string(status));
}

int32_t Product::most_launches() const {
  return cuda::most_launches(shape_, library_.multiprocessors(), library_.workspace_bytes());
}

bool Product::fits(const cublasLtMatmulHeuristicResult_t& result) const {
  return result.workspaceSize <= static_cast<size_t>(library_.workspace_bytes());
}

bool Product::allows(const Algorithm& algorithm) const {
  if (algorithm.is_own) return thin_.has_value();
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      library_.functions().check_algorithm(library_.handle(), description_, first_, second_,
                                           addend_, result_, &algorithm.of_library, &result);
  return status == CUBLAS_STATUS_SUCCESS && fits(result);
}

void Product::choose(const Algorithm& algorithm) {
  algorithm_ = algorithm;
  is_chosen_ = true;
}

void Product::choose_loaded(const Algorithm& algorithm) {
  choose(algorithm);
  is_loaded_ = true;
}

void Product::load(const Addresses& addresses, void* workspace, cudaStream_t stream) {
  if (is_loaded_) return;
  if (!try_algorithm(algorithm_, addresses, workspace, stream)) refuse();
  is_loaded_ = true;
}

void Product::refuse() const {
  base::throw_user_error(
      "cuBLASLt does not run the product ({} x {}) ({} x {}) in {} by an algorithm that it says it "
      "has. Free memory of the card if little is left; else set 'backend: cpu'.",
      shape_.a.rows, shape_.a.columns, shape_.b.rows, shape_.b.columns,
      base::name_of(shape_.a.dtype));
}

void Product::multiply(const Addresses& addresses, void* workspace, cudaStream_t stream) const {
  library_.check(queue(algorithm_, addresses, workspace, stream), "cublasLtMatmul");
  // The library computes it in one call. This is counted separately from the launches that were
  // queued.
  if (!algorithm_.is_own) launch_count().spared += most_launches() - 1;
}

bool Product::try_algorithm(const Algorithm& algorithm, const Addresses& addresses, void* workspace,
                            cudaStream_t stream) const {
  if (queue(algorithm, addresses, workspace, stream) == CUBLAS_STATUS_SUCCESS) return true;
  cudaGetLastError();  // clears the error, which may be the driver's
  return false;
}

cublasStatus_t Product::queue(const Algorithm& algorithm, const Addresses& addresses,
                              void* workspace, cudaStream_t stream) const {
  if (algorithm.is_own) {
    multiply_thin(thin_run(*thin_, addresses, workspace, library_.multiprocessors(),
                           library_.workspace_bytes()),
                  stream);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (KernelLoading::is_on()) return CUBLAS_STATUS_SUCCESS;
  launch_count().add(stream);
  const void* addend = shape_.beta == 0.0F ? addresses.c : addresses.addend;
  return library_.functions().matmul(library_.handle(), description_, &shape_.alpha, addresses.b,
                                     first_, addresses.a, second_, &shape_.beta, addend, addend_,
                                     addresses.c, result_, &algorithm.of_library, workspace,
                                     static_cast<size_t>(library_.workspace_bytes()), stream);
}

}  // namespace snug::backends::cuda
