// cuBLASLt, opened together with the first CUDA backend, so that a run on the CPU never loads its
// hundreds of megabytes. One handle; used by the thread that drives the backend.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "backends/cuda/library/cublas_lt_api.h"
#include "backends/cuda/product/algorithm_choices.h"
#include "backends/cuda/product/product_shape.h"

namespace snug::backends::cuda {

// The functions of the library that Snug calls.
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
  decltype(&cublasLtMatmulAlgoCheck) check_algorithm = nullptr;
  int64_t workspace_bytes = 0;  // the scratch that a product may use
};

// Opens the library on the first call. Throws UserError where it is not found.
const CublasLtFunctions& cublas_lt_functions();

class Product;

class CublasLt {
 public:
  // Opens the library for a device with this name and number of multiprocessors, which are stored
  // with its choices.
  CublasLt(const std::string& device, int64_t multiprocessors);
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt();

  size_t version() const { return functions_.version(); }
  int64_t multiprocessors() const { return multiprocessors_; }
  int64_t workspace_bytes() const { return functions_.workspace_bytes; }
  const CublasLtFunctions& functions() const { return functions_; }
  cublasLtHandle_t handle() const { return handle_; }
  // The product of this shape, created once; with the algorithm of an earlier choice, if there is
  // one that the library still supports.
  std::shared_ptr<Product> product(const ProductShape& shape);

  // Whether products are timed to choose their algorithms (tune_product.h).
  bool times() const { return times_; }
  void set_times(bool times) { times_ = times; }
  void keep_choice(const ProductShape& shape, const Algorithm& algorithm, double seconds);
  AlgorithmChoices& choices() { return choices_; }
  const AlgorithmChoices& choices() const { return choices_; }
  // A line that says for how many products the algorithm was chosen, and how; empty for none.
  std::string summary() const;
  // Aborts with the library's message unless the status is success.
  void check(cublasStatus_t status, const char* what) const;

 private:
  const CublasLtFunctions& functions_;
  cublasLtHandle_t handle_ = nullptr;
  int64_t multiprocessors_;
  AlgorithmChoices choices_;
  std::map<ProductShape, std::shared_ptr<Product>> products_;
  bool times_ = true;
  int timed_ = 0;
  int taken_ = 0;    // choices taken from an earlier run
  int refused_ = 0;  // choices of an earlier run that the library does not support here
};

}  // namespace snug::backends::cuda
