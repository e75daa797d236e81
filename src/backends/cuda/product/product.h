// One matrix product through cuBLASLt: descriptors and an algorithm, created once and run often.
// The library offers several algorithms, and for thin products there is a kernel of Snug's own;
// tune_product.h chooses the fastest.
//
// cuBLASLt's matrices are column-major. A row-major (rows, columns) matrix is its column-major
// transpose with the same leading dimension, so c = op(a) op(b) is requested as c^T = op(b)^T
// op(a)^T: the factors swap places and nothing is copied.
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
  // Uses the library's first suggestion until another algorithm is chosen. Fails a CHECK where it
  // has no algorithm for the shape.
  Product(const ProductShape& shape, const CublasLt& library);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product();

  struct Addresses {
    const void* a = nullptr;
    const void* b = nullptr;
    const void* addend = nullptr;  // read only if beta is not 0
    void* c = nullptr;
  };
  // `workspace` has library.workspace_bytes() and is aligned to 256. Asynchronous. While kernels
  // are loaded (kernel_loading.h) the library is not called.
  void multiply(const Addresses& addresses, void* workspace, cudaStream_t stream) const;
  // Multiplies with another algorithm. False where that is refused; then nothing is queued.
  bool try_algorithm(const Algorithm& algorithm, const Addresses& addresses, void* workspace,
                     cudaStream_t stream) const;

  const ProductShape& shape() const { return shape_; }
  // The class of algorithm: the library, or (timed) the faster of the library and Snug's own
  // kernel.
  program::ProductAlgorithm algorithm() const {
    return thin_ ? program::ProductAlgorithm::timed : program::ProductAlgorithm::library;
  }
  // The current choice within this class: the library, or Snug's own kernel.
  program::ProductAlgorithm chosen() const {
    return algorithm_.is_own ? program::ProductAlgorithm::thin : program::ProductAlgorithm::library;
  }
  // The algorithms to choose from: one to eight of the library, the best by its own estimate first,
  // and Snug's own kernel if it can compute this product.
  const std::vector<Algorithm>& offers() const { return offers_; }
  // The most launches of any of these algorithms (product_shape.h), and the scratch that they may
  // use.
  int32_t most_launches() const;
  int64_t workspace_bytes() const { return library_.workspace_bytes(); }
  // Runs it once with the chosen algorithm, unless it has run before, so that the library loads its
  // kernels; writes c like any product. Throws UserError where the library refuses.
  void load(const Addresses& addresses, void* workspace, cudaStream_t stream);
  bool is_loaded() const { return is_loaded_; }
  // Throws UserError for a product that the library fails to run.
  [[noreturn]] void refuse() const;
  // Whether the algorithm can run here, for this shape and with the workspace.
  bool allows(const Algorithm& algorithm) const;
  void choose(const Algorithm& algorithm);
  // Chooses an algorithm that has already run here.
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
  cublasLtMatrixLayout_t first_ = nullptr;   // layout of b
  cublasLtMatrixLayout_t second_ = nullptr;  // layout of a
  cublasLtMatrixLayout_t addend_ = nullptr;
  cublasLtMatrixLayout_t result_ = nullptr;
  std::vector<Algorithm> offers_;
  std::optional<ThinRun> thin_;  // Snug's own kernel, if it can compute this product
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
