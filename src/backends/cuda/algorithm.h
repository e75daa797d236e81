// A way to make a product.
#pragma once

#include "backends/cuda/cublas_lt_api.h"

namespace snug::backends::cuda {

struct Algorithm {
  bool is_own = false;                // the kernel for thin products; else the library's:
  cublasLtMatmulAlgo_t of_library{};  // opaque, 64 bytes
};

}  // namespace snug::backends::cuda
