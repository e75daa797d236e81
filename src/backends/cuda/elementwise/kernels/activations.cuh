// Activations of single elements, in registers.
#pragma once

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

__device__ inline float silu_mul_of(float gate, float up) { return up * (gate * sigmoid(gate)); }

// gelu(x) = x * factor, gelu'(x) = factor + x * slope.
struct GeluGate {
  float factor, slope;
};

// The normal distribution function and its density.
__device__ inline GeluGate normal_gate(float x) {
  constexpr float kRootHalf = 0.707106781F;
  constexpr float kDensityAtZero = 0.398942280F;  // 1 / sqrt(2 pi)
  return {0.5F * erfcf(-kRootHalf * x), kDensityAtZero * expf(-0.5F * x * x)};
}

// (1 + tanh(u)) / 2 is the sigmoid of 2 u = sqrt(8 / pi) (x + 0.044715 x^3), and with e = exp(-2
// |u|) its slope is (2 u)' e / (1 + e)^2, which avoids cancellation. For |2 u| above 16 the sigmoid
// is 0 or 1.
__device__ inline GeluGate tanh_gate(float x) {
  constexpr float kLinear = 1.59576912F;  // sqrt(8 / pi)
  constexpr float kCubic = kLinear * 0.044715F;
  const float a = fminf(fabsf(x), 16.0F);
  const float e = expf(-a * (kLinear + kCubic * a * a));
  const float r = 1.0F / (1.0F + e);
  return {x < 0.0F ? e * r : r, (kLinear + 3.0F * kCubic * a * a) * (e * r * r)};
}

__device__ inline GeluGate gelu_gate(float x, bool tanh) {
  return tanh ? tanh_gate(x) : normal_gate(x);
}

}  // namespace snug::backends::cuda
