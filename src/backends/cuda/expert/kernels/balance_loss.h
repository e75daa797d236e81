// The loss that balances experts: sums each expert's loads over layers, and multiplies them. One
// block, since there are only a few thousand numbers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// The results of a layer's route (route.h).
struct BalanceLayer {
  const int32_t* counts = nullptr;  // (experts)
  const float* sums = nullptr;      // (experts)
};

struct BalanceRun {
  BalanceLayer layers[kBalanceLayers];
  int32_t count = 0;       // number of layers in this launch
  bool is_first = true;    // first of several launches; otherwise adds to `loads`
  bool is_last = true;     // last of several launches, which writes the loss
  int32_t all_layers = 0;  // number of layers in all launches
  int32_t experts = 0;
  int32_t k = 0;
  float factor = 0.0F;
  const float* inverse_tokens = nullptr;  // (1)
  RouteLoad* loads = nullptr;             // (experts), over all layers so far
  float* loss = nullptr;                  // (1)
  float* dsums = nullptr;                 // (experts); null if not wanted
};
void balance_loss(const BalanceRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
