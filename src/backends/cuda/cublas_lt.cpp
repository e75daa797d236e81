#include "backends/cuda/cublas_lt.h"

#include "backends/cuda/product.h"
#include "base/error.h"

namespace snug::backends::cuda {

CublasLt::CublasLt() : functions_(cublas_lt_functions()) {
  check(functions_.create(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() {
  products_.clear();
  functions_.destroy(handle_);
}

std::shared_ptr<const Product> CublasLt::product(const ProductShape& shape) {
  std::shared_ptr<const Product>& found = products_[shape];
  if (found == nullptr) found = std::make_shared<const Product>(shape, *this);
  return found;
}

void CublasLt::check(cublasStatus_t status, const char* what) const {
  SNUG_CHECK(status == CUBLAS_STATUS_SUCCESS, "{}: {}", what, functions_.status_string(status));
}

}  // namespace snug::backends::cuda
