// Kernels over runs of elements: conversion, addition, sums over rows, scale, relu, softcap,
// dropout, noise, gelu, stochastic rounding.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// The random stream of a stochastic rounding, and the row-major index of the run's first element.
struct RoundingStream {
  uint32_t key[2];
  int64_t first;
};

// The random stream of a dropout for one token. An element is dropped if its word is below the
// threshold.
struct DropoutStream {
  uint32_t key[2];
  uint32_t row;
  uint32_t position;
  uint32_t threshold;
  float scale;
};

// The random stream of noise for one token, and the largest noise.
struct NoiseStream {
  uint32_t key[2];
  uint32_t row;
  uint32_t position;
  float scale;
};

// What the learned numbers and the constants of xielu amount to: the factor of x^2 above 0, that of
// exp(min(x, epsilon)) - 1 - x below, and that of x.
struct XieluFactors {
  float positive;
  float negative;
  float beta;
  float epsilon;
};

// `count` vectors of fp32 sums, `stride` floats apart.
struct Partials {
  const float* data;
  int64_t stride;
  int64_t count;
};

struct ElementwiseKernels {
  // y = x. The two may be the same memory if their types are the same.
  void (*convert[kElements][kElements])(const void* x, void* y, int64_t n);
  // c = a + b; c may be a or b.
  void (*add[kElements][kElements][kElements])(const void* a, const void* b, void* c, int64_t n);
  // y = round(y + x), rounded stochastically; y is bf16.
  void (*accumulate_stochastically[kElements])(const void* x, uint16_t* y, int64_t n,
                                               const RoundingStream& stream);
  // sums[j] = sum over rows of x[row * stride + j].
  void (*sum_rows[kElements])(const void* x, int64_t stride, int64_t rows, int64_t columns,
                              float* sums);
  // y = [y +] the sum of the partials' first n elements, added in order.
  void (*add_partials[kElements])(const Partials& partials, bool accumulate, void* y, int64_t n);
  // y = factor x; y may be x.
  void (*scale[kElements][kElements])(const void* x, void* y, int64_t n, float factor);
  // y = max(x, 0); y may be x.
  void (*relu[kElements][kElements])(const void* x, void* y, int64_t n);
  // dx = dy where y > 0, else 0; dx may be dy or y.
  void (*relu_grad[kElements][kElements][kElements])(const void* dy, const void* y, void* dx,
                                                     int64_t n);
  // y = cap tanh(x / cap); y may be x.
  void (*softcap[kElements][kElements])(const void* x, void* y, int64_t n, float cap);
  // dx = dy (1 - (y / cap)^2); dx may be dy or y.
  void (*softcap_grad[kElements][kElements][kElements])(const void* dy, const void* y, void* dx,
                                                        int64_t n, float cap);
  // Dropout of one token's columns; y may be x.
  void (*dropout[kElements][kElements])(const void* x, void* y, int64_t n,
                                        const DropoutStream& stream);
  // y = gelu(x), [0] the exact form and [1] the tanh form; y may be x.
  void (*gelu[2][kElements][kElements])(const void* x, void* y, int64_t n);
  // dx = dy gelu'(x); dx may be dy or x.
  void (*gelu_grad[2][kElements][kElements][kElements])(const void* dy, const void* x, void* dx,
                                                        int64_t n);
  // y = x + noise for one token's columns; y may be x.
  void (*add_noise[kElements][kElements])(const void* x, void* y, int64_t n,
                                          const NoiseStream& stream);
  // y = xielu(x); y may be x.
  void (*xielu[kElements][kElements])(const void* x, void* y, int64_t n, const XieluFactors& by);
  // dx = dy xielu'(x); dx may be dy or x.
  void (*xielu_grad[kElements][kElements][kElements])(const void* dy, const void* x, void* dx,
                                                      int64_t n, const XieluFactors& by);
};

}  // namespace snug::backends::cpu
