// Plain and gated activations, with their gradients. gelu has the exact form and the tanh form.
// Outputs may be the same memory as an input.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

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

struct SigmoidMulRun {
  Walk walk;
  DeviceRows gate, up, y;
};
void sigmoid_mul(const SigmoidMulRun& run, cudaStream_t stream);

struct SigmoidMulGradRun {
  Walk walk;
  DeviceRows dy, gate, up, dgate, dup;
};
void sigmoid_mul_grad(const SigmoidMulGradRun& run, cudaStream_t stream);

struct SiluMulRun {
  Walk walk;
  DeviceRows gate, up, y;
};
void silu_mul(const SiluMulRun& run, cudaStream_t stream);

struct SiluMulGradRun {
  Walk walk;
  DeviceRows dy, gate, up, dgate, dup;
};
void silu_mul_grad(const SiluMulGradRun& run, cudaStream_t stream);

struct GeluMulRun {
  Walk walk;
  DeviceRows gate, up, y;
  bool tanh = false;
};
void gelu_mul(const GeluMulRun& run, cudaStream_t stream);

struct GeluMulGradRun {
  Walk walk;
  DeviceRows dy, gate, up, dgate, dup;
  bool tanh = false;
};
void gelu_mul_grad(const GeluMulGradRun& run, cudaStream_t stream);

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
