// Chooses the experts of every token, places the tokens' rows by expert, sums the loads for the
// balance loss, and computes the gradient of all this.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// Bounds (count, 2) of tokens.
struct SegmentList {
  const int32_t* bounds = nullptr;
  int64_t count = 0;
};

// For each token, chooses the k experts with the largest logits or scores, the first one of equals,
// and their scores, which with `normalize` are divided by their sum (program/kinds/expert/route.h).
// Then expert e gets its choices, in order, in the
// rows [bounds[e, 0], bounds[e, 1]).
struct RouteRun {
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t k = 0;
  bool normalize = false;
  bool sigmoid = false;   // otherwise scores are a softmax
  bool by_score = false;  // experts are chosen by their scores, and not by their logits
  int64_t groups = 1;     // at most 64
  int64_t chosen_groups = 1;
  float scale = 1.0F;
  float epsilon = 0.0F;               // is added to the sum of scores
  const float* correction = nullptr;  // (experts); null if there is none
  DeviceRows logits;                  // (tokens, experts)
  float* weights = nullptr;           // (tokens, k)
  int32_t* ids = nullptr;             // (tokens, k)
  int32_t* places = nullptr;          // (tokens, k)
  int32_t* bounds = nullptr;          // (experts, 2)
  // How many of the tokens in segments chose each expert, and the sum of their probabilities for
  // it. Null counts: nothing is summed.
  SegmentList segments;
  int32_t* counts = nullptr;   // (experts)
  float* sums = nullptr;       // (experts)
  RouteLoad* loads = nullptr;  // scratch of route_load_bytes: the loads of each block of tokens
};
void route(const RouteRun& run, cudaStream_t stream);

struct RouteGradRun {
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t k = 0;
  bool normalize = false;
  bool sigmoid = false;
  float scale = 1.0F;
  const float* dweights = nullptr;  // (tokens, k)
  DeviceRows logits, dlogits;       // (tokens, experts)
  const int32_t* ids = nullptr;     // (tokens, k)
  SegmentList segments;
  const float* dsums = nullptr;  // (experts); null if there are none
};
void route_grad(const RouteGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
