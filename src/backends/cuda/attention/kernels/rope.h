// The table of angles and the rotation. y may be the same memory as x.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/attention/kernels/rotation_form.h"
#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

struct RotaryTableRun {
  const int32_t* positions = nullptr;        // (tokens)
  const float* inverse_frequency = nullptr;  // (half)
  float* table = nullptr;                    // (tokens, 2 half)
  int64_t tokens = 0;
  int64_t half = 0;
  float factor = 1.0F;
  float growth = 0.0F;
  int64_t period = 1;
};
void rotary_table(const RotaryTableRun& run, cudaStream_t stream);

struct RopeRun {
  Walk walk;  // over x and y; uses vectors only if can_rotate_vectors
  DeviceRows x, y;
  DeviceRows table;  // (tokens, width)
  int64_t head_dim = 0;
  int64_t width = 0;          // elements of a head that are rotated; the others are copied
  bool neighbours = false;    // a pair is adjacent elements; otherwise they are width / 2 apart
  int64_t rotated_heads = 0;  // the number of heads that are rotated; later ones are copied
  bool inverse = false;
};
void rope(const RopeRun& run, cudaStream_t stream);

// Several tensors with the same rows at once: each is rotated, written to the rows of a cache given
// by slots (a negative slot is skipped), or both.
struct RotationPart {
  DeviceRows x;
  DeviceRows y;  // data is null if x is not rotated
  DeviceRows
      cache;  // data is null if nothing is written to a cache; takes the stored y, if there is one
  int64_t columns = 0;
  int64_t head_dim = 0;
  int64_t width = 0;
  bool neighbours = false;
  int64_t rotated_heads = 0;
  int64_t cache_rows = 0;
};
struct RotationsRun {
  int64_t rows = 0;
  bool vectors = false;  // all can be read kVectorElements at a time, and rotated so
  DeviceRows table;      // (rows, width)
  const int32_t* slots = nullptr;
  int32_t count = 0;
  RotationPart parts[kRotationParts];
};
void rotate_and_cache(const RotationsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
