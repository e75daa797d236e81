#include "backends/cuda/library/cublas_lt.h"

#include "backends/cuda/product/product.h"
#include "base/error.h"

namespace snug::backends::cuda {

CublasLt::CublasLt(const std::string& device, int64_t multiprocessors)
    : functions_(cublas_lt_functions()),
      multiprocessors_(multiprocessors),
      choices_(fmt::format("{} of {} multiprocessors, cuBLASLt {}", device, multiprocessors,
                           functions_.version()),
               functions_.workspace_bytes) {
  check(functions_.create(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() {
  products_.clear();
  functions_.destroy(handle_);
}

std::shared_ptr<Product> CublasLt::product(const ProductShape& shape) {
  std::shared_ptr<Product>& product = products_[shape];
  if (product != nullptr) return product;
  product = std::make_shared<Product>(shape, *this);
  if (const Algorithm* earlier = choices_.find(shape); earlier != nullptr) {
    const bool allowed = product->allows(*earlier);
    if (allowed) product->choose(*earlier);
    ++(allowed ? taken_ : refused_);
  }
  return product;
}

void CublasLt::keep_choice(const ProductShape& shape, const Algorithm& algorithm, double seconds) {
  choices_.keep(shape, algorithm, seconds);
  ++timed_;
}

std::string CublasLt::summary() const {
  if (timed_ + taken_ == 0) return {};
  const std::string refused =
      refused_ == 0 ? "" : fmt::format("; {} of the earlier run's cannot run here", refused_);
  return fmt::format("algorithms of matrix products: {} as in the run before, {} timed now{}",
                     taken_, timed_, refused);
}

void CublasLt::check(cublasStatus_t status, const char* what) const {
  SNUG_CHECK(status == CUBLAS_STATUS_SUCCESS, "{}: {}", what, functions_.status_string(status));
}

}  // namespace snug::backends::cuda
