// The choice of experts for every token, the rows that it gives them, and the choice's gradient.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/operand.h"

namespace snug::backends::cuda {

// Of each token the k largest of its logits, of equal ones the first, and their probabilities,
// divided by their sum with `normalize`. Then, of all choices in order, those of each expert get
// the rows [bounds[e, 0], bounds[e, 1]).
struct RouteRun {
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t k = 0;
  bool normalize = false;
  Operand logits;             // (tokens, experts)
  float* weights = nullptr;   // (tokens, k)
  int32_t* ids = nullptr;     // (tokens, k)
  int32_t* places = nullptr;  // (tokens, k)
  int32_t* bounds = nullptr;  // (experts, 2)
};
void route(const RouteRun& run, cudaStream_t stream);

struct RouteGradRun {
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t k = 0;
  bool normalize = false;
  const float* dweights = nullptr;  // (tokens, k)
  Operand logits, dlogits;          // (tokens, experts)
  const int32_t* ids = nullptr;     // (tokens, k)
};
void route_grad(const RouteGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
