// One matrix product through cuBLASLt: descriptors and an algorithm, made once, run often.
//
// cuBLASLt counts matrices column by column. A row-major (rows, columns) matrix is its column-major
// transpose with the same leading dimension, so c = op(a) op(b) is asked for as c^T = op(b)^T
// op(a)^T: the factors change places and nothing is copied.
#pragma once

#include "backends/cuda/cublas_lt.h"

namespace snug::backends::cuda {

class Product {
 public:
  // Fails a CHECK where the library has no algorithm for the shape.
  Product(const ProductShape& shape, const CublasLt& library);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product();

  struct Addresses {
    const void* a = nullptr;
    const void* b = nullptr;
    const void* addend = nullptr;  // read only where beta is not 0
    void* c = nullptr;
  };
  // workspace: library.workspace_bytes(), at a multiple of 256. Asynchronous.
  void multiply(const Addresses& addresses, void* workspace, cudaStream_t stream) const;

 private:
  void choose_algorithm();

  const CublasLt& library_;
  ProductShape shape_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr;   // b
  cublasLtMatrixLayout_t second_ = nullptr;  // a
  cublasLtMatrixLayout_t addend_ = nullptr;
  cublasLtMatrixLayout_t result_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace snug::backends::cuda
