// Chooses a product's algorithm among its offers: each is run on the device, once to warm up and
// then a few times in turns, so that a changing clock rate favours none. The one with the smallest
// median is the fastest.
//
// A product whose algorithm is not timed is run once, so that the library loads its kernels.
//
// The runs use the operation's own tensors and workspace, before anything is loaded, and allocate
// nothing. The factors are filled with noise, and everything that was touched is zero afterwards.
#pragma once

#include "backends/cuda/product/product.h"

namespace snug::backends::cuda {

// The library's scratch of library.workspace_bytes(), and the stream.
struct TuningPlace {
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};

// Chooses an algorithm and stores it with the library's choices, unless the product already has
// one, there is only one, or products are not timed. Waits for the device. Fails a CHECK where no
// algorithm runs; throws UserError where the only one fails.
void tune_product(Product& product, const Product::Addresses& addresses, const TuningPlace& place,
                  CublasLt& library);

}  // namespace snug::backends::cuda
