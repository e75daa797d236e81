// Launches of the elementwise kinds. Asynchronous on the stream; outputs may be the same memory as
// an input where the program's in-place pairs say so.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/formulas/random_bits.h"

namespace snug::backends::cuda {

struct AddRun {
  Walk walk;
  DeviceRows a, b, c;
};
void add(const AddRun& run, cudaStream_t stream);

// A cast, or a copy if the types are the same.
struct CastRun {
  Walk walk;
  DeviceRows x, y;
};
void cast(const CastRun& run, cudaStream_t stream);

struct ScaleRun {
  Walk walk;
  DeviceRows x, y;
  float factor = 1.0F;
};
void scale(const ScaleRun& run, cudaStream_t stream);

struct FillZeroRun {
  Walk walk;
  DeviceRows y;
};
void fill_zero(const FillZeroRun& run, cudaStream_t stream);

struct AddBiasRun {
  Walk walk;
  DeviceRows x, bias, y;
};
void add_bias(const AddBiasRun& run, cudaStream_t stream);

// What determines an operation's random bits; the step and the first row are on the device.
struct RandomKey {
  int64_t seed = 0;
  int32_t site = 0;
  const int32_t* random = nullptr;  // [step, first row]
};

// y += x, rounded stochastically to bf16; the row-major index of an element selects its random
// bits.
struct RoundedSumRun {
  Walk walk;
  DeviceRows x, y;
  RandomKey key;
};
void add_rounded(const RoundedSumRun& run, cudaStream_t stream);

struct DropoutRun {
  Walk walk;
  DeviceRows x, y;
  RandomKey key;
  float probability = 0.0F;
  int64_t row_length = 1;
};
void dropout(const DropoutRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
