// Chooses a product's algorithm among its offers: each is run on the device, once to warm up and
// then a few times in turns, so that a clock that rises or falls meanwhile favours none. The least
// median is the fastest.
//
// The sums run on the operation's own tensors and workspace, before anything is loaded: nothing is
// allocated. The factors get noise, and all that was touched is zero again afterwards.
#pragma once

#include "backends/cuda/product.h"

namespace snug::backends::cuda {

// Where the library's own scratch lies, library.workspace_bytes(), and the stream.
struct TuningPlace {
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};

// Chooses and keeps the choice in the library's. Does nothing where the product's is chosen, or
// there is no choice. Waits for the device. Fails a CHECK where none of them runs.
void tune_product(Product& product, const Product::Addresses& addresses, const TuningPlace& place,
                  CublasLt& library);

}  // namespace snug::backends::cuda
