// One matrix product through cuBLASLt: descriptors and an algorithm, made once, run often. The
// library offers several algorithms, and for a thin product there is an own kernel; tune_product.h
// says which is the fastest.
//
// cuBLASLt counts matrices column by column. A row-major (rows, columns) matrix is its column-major
// transpose with the same leading dimension, so c = op(a) op(b) is asked for as c^T = op(b)^T
// op(a)^T: the factors change places and nothing is copied.
#pragma once

#include <optional>
#include <vector>

#include "backends/cuda/library/cublas_lt.h"
#include "backends/cuda/product/kernels/thin_product.h"
#include "backends/invocation.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

class Product {
 public:
  // Takes the first that the library names, until another is chosen. Fails a CHECK where it has no
  // algorithm for the shape.
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
  // workspace: library.workspace_bytes(), at a multiple of 256. Asynchronous. While kernels are
  // loaded (kernel_loading.h) the library is not called.
  void multiply(const Addresses& addresses, void* workspace, cudaStream_t stream) const;
  // Multiplies by another algorithm. False where it is refused; then nothing is queued.
  bool try_algorithm(const Algorithm& algorithm, const Addresses& addresses, void* workspace,
                     cudaStream_t stream) const;

  const ProductShape& shape() const { return shape_; }
  // What it is computed by: the library, or the faster of the library and the own kernel.
  program::ProductAlgorithm algorithm() const {
    return thin_ ? program::ProductAlgorithm::timed : program::ProductAlgorithm::library;
  }
  // Which of these it is computed by as chosen so far: the library, or the own kernel.
  program::ProductAlgorithm chosen() const {
    return algorithm_.is_own ? program::ProductAlgorithm::thin : program::ProductAlgorithm::library;
  }
  // What there is to choose from: at least one and at most eight of the library, the best by its
  // own guess first, and the own kernel where it makes this product.
  const std::vector<Algorithm>& offers() const { return offers_; }
  // The most launches of whichever is chosen (product_shape.h), and the scratch that it may use.
  int32_t most_launches() const;
  int64_t workspace_bytes() const { return library_.workspace_bytes(); }
  // Runs it once as it is chosen, unless it ran before, so that the library has loaded its kernels;
  // leaves c as a product leaves it. Throws UserError where the library refuses.
  void load(const Addresses& addresses, void* workspace, cudaStream_t stream);
  bool is_loaded() const { return is_loaded_; }
  // Throws the UserError of a product that the library does not run.
  [[noreturn]] void refuse() const;
  // Whether it can run here, for this shape and in the workspace.
  bool allows(const Algorithm& algorithm) const;
  void choose(const Algorithm& algorithm);
  // One that has run here.
  void choose_loaded(const Algorithm& algorithm);
  bool is_chosen() const { return is_chosen_; }

 private:
  void find_offers();
  bool fits(const cublasLtMatmulHeuristicResult_t& result) const;
  cublasStatus_t queue(const Algorithm& algorithm, const Addresses& addresses, void* workspace,
                       cudaStream_t stream) const;

  const CublasLt& library_;
  ProductShape shape_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr;   // b
  cublasLtMatrixLayout_t second_ = nullptr;  // a
  cublasLtMatrixLayout_t addend_ = nullptr;
  cublasLtMatrixLayout_t result_ = nullptr;
  std::vector<Algorithm> offers_;
  std::optional<ThinRun> thin_;  // of the own kernel, where it makes this product
  Algorithm algorithm_;
  bool is_chosen_ = false;
  bool is_loaded_ = false;
};

// Notes what a product that is timed was computed by, under the decision that states the class.
template <auto... decision>
void note_choice(const Product& product, const Invocation& invocation) {
  if (product.algorithm() == program::ProductAlgorithm::timed)
    invocation.note_decision<decision...>(product.chosen());
}

}  // namespace snug::backends::cuda
