// The loss that balances experts: sums over layers of what each expert got, and their products. One
// block, few thousand numbers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// What routes give of a layer (route.h).
struct BalanceLayer {
  const int32_t* counts = nullptr;  // (experts)
  const float* sums = nullptr;      // (experts)
};

struct BalanceRun {
  BalanceLayer layers[kBalanceLayers];
  int32_t count = 0;       // of those
  bool is_first = true;    // launch of several; otherwise it adds to `loads`
  bool is_last = true;     // it ends with the loss
  int32_t all_layers = 0;  // of all launches
  int32_t experts = 0;
  int32_t k = 0;
  float factor = 0.0F;
  const float* inverse_tokens = nullptr;  // (1)
  RouteLoad* loads = nullptr;             // (experts), of all layers so far
  float* loss = nullptr;                  // (1)
  float* dsums = nullptr;                 // (experts); null: not wanted
};
void balance_loss(const BalanceRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
