// Plain and gated activations, with their gradients. gelu has the exact form and the tanh form.
// Outputs may be the same memory as an input.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/gate_activation.h"

namespace snug::backends::cuda {

struct GeluRun {
  Walk walk;
  DeviceRows x, y;
  bool tanh = false;
};
void gelu(const GeluRun& run, cudaStream_t stream);

struct GeluGradRun {
  Walk walk;
  DeviceRows dy, x, dx;
  bool tanh = false;
};
void gelu_grad(const GeluGradRun& run, cudaStream_t stream);

struct ReluRun {
  Walk walk;
  DeviceRows x, y;
};
void relu(const ReluRun& run, cudaStream_t stream);

struct ReluGradRun {
  Walk walk;
  DeviceRows dy, y, dx;
};
void relu_grad(const ReluGradRun& run, cudaStream_t stream);

// The operands of xielu with one element each.
struct XieluNumbers {
  DeviceRows alpha_p, alpha_n, beta, epsilon;
};

struct XieluRun {
  Walk walk;
  DeviceRows x, y;
  XieluNumbers numbers;
};
void xielu(const XieluRun& run, cudaStream_t stream);

struct XieluGradRun {
  Walk walk;
  DeviceRows dy, x, dx;
  XieluNumbers numbers;
};
void xielu_grad(const XieluGradRun& run, cudaStream_t stream);

struct XieluSlopeRun {
  Walk walk;
  DeviceRows x, slope, alpha, epsilon;
  bool negative = false;
};
void xielu_slope(const XieluSlopeRun& run, cudaStream_t stream);

struct SoftcapRun {
  Walk walk;
  DeviceRows x, y;
  float cap = 1.0F;
};
void softcap(const SoftcapRun& run, cudaStream_t stream);

struct SoftcapGradRun {
  Walk walk;
  DeviceRows dy, y, dx;
  float cap = 1.0F;
};
void softcap_grad(const SoftcapGradRun& run, cudaStream_t stream);

struct GatedMulRun {
  Walk walk;
  DeviceRows gate, up, y;
  GateActivation activation{};
};
void gated_mul(const GatedMulRun& run, cudaStream_t stream);

struct GatedMulGradRun {
  Walk walk;
  DeviceRows dy, gate, up, dgate, dup;
  GateActivation activation{};
};
void gated_mul_grad(const GatedMulGradRun& run, cudaStream_t stream);

// gate_up has pairs of a gate and an up: twice as many columns as the walk.
struct ClampedSwigluRun {
  Walk walk;  // over y
  DeviceRows gate_up, y;
  float limit = 0.0F;
  float alpha = 0.0F;
};
void clamped_swiglu(const ClampedSwigluRun& run, cudaStream_t stream);

struct ClampedSwigluGradRun {
  Walk walk;  // over dy
  DeviceRows dy, gate_up, dgate_up;
  float limit = 0.0F;
  float alpha = 0.0F;
};
void clamped_swiglu_grad(const ClampedSwigluGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
