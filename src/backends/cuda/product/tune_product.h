// Chooses a product's algorithm among its offers: each is run on the device, once to warm up and
// then a few times in turns, so that a clock that rises or falls meanwhile favours none. The least
// median is the fastest.
//
// A product whose algorithm is not timed is run once, so that the library has loaded its kernels.
//
// The sums run on the operation's own tensors and workspace, before anything is loaded: nothing is
// allocated. The factors get noise, and all that was touched is zero again afterwards.
#pragma once

#include "backends/cuda/product/product.h"

namespace snug::backends::cuda {

// Where the library's own scratch lies, library.workspace_bytes(), and the stream.
struct TuningPlace {
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};

// Chooses and keeps the choice in the library's, unless the product's is chosen, there is no choice
// or products are not timed. Waits for the device. Fails a CHECK where none of them runs; throws
// UserError where the one that is not timed does not.
void tune_product(Product& product, const Product::Addresses& addresses, const TuningPlace& place,
                  CublasLt& library);

}  // namespace snug::backends::cuda
