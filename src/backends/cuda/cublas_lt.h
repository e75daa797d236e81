// cuBLASLt, opened when the first CUDA backend is: a run on the CPU never loads its hundreds of
// megabytes. One handle; used by the thread that drives the backend.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "backends/cuda/cublas_lt_api.h"
#include "backends/cuda/product_shape.h"

namespace snug::backends::cuda {

// What Snug calls of the library.
struct CublasLtFunctions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) matmul_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) matmul_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) find_algorithms = nullptr;
  int64_t workspace_bytes = 0;  // that a product may use
};

// Opens the library once. Throws UserError where it is not found.
const CublasLtFunctions& cublas_lt_functions();

class Product;

class CublasLt {
 public:
  CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt();

  size_t version() const { return functions_.version(); }
  int64_t workspace_bytes() const { return functions_.workspace_bytes; }
  const CublasLtFunctions& functions() const { return functions_; }
  cublasLtHandle_t handle() const { return handle_; }
  // The product of this shape, made once.
  std::shared_ptr<const Product> product(const ProductShape& shape);
  // Aborts with the library's words for what is no success.
  void check(cublasStatus_t status, const char* what) const;

 private:
  const CublasLtFunctions& functions_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<ProductShape, std::shared_ptr<const Product>> products_;
};

}  // namespace snug::backends::cuda
