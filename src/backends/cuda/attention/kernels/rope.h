// The table of angles and the rotation. y may take x's bytes.
#pragma once

#include <cuda_runtime_api.h>

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
};
void rotary_table(const RotaryTableRun& run, cudaStream_t stream);

struct RopeRun {
  Walk walk;  // of x and y; vectors only if can_rotate_vectors
  DeviceRows x, y;
  DeviceRows table;  // (tokens, width)
  int64_t head_dim = 0;
  int64_t width = 0;          // elements of a head that are rotated; those beyond are copied
  bool neighbours = false;    // pairs are neighbours, and no halves of the width
  int64_t rotated_heads = 0;  // the heads beyond are copied
  bool inverse = false;
};
void rope(const RopeRun& run, cudaStream_t stream);

// Several tensors of the same rows at once: each is rotated, written to the rows of a cache that
// slots name (a negative one is skipped), or both.
struct RotationPart {
  DeviceRows x;
  DeviceRows y;  // data == nullptr: not rotated
  DeviceRows
      cache;  // data == nullptr: not written to one; of y as it is stored, where there is one
  int64_t columns = 0;
  int64_t head_dim = 0;
  int64_t width = 0;
  bool neighbours = false;
  int64_t rotated_heads = 0;
  int64_t cache_rows = 0;
};
struct RotationsRun {
  int64_t rows = 0;
  bool vectors = false;  // all may be read kVectorElements at a time, and can_rotate_vectors of all
  DeviceRows table;      // (rows, width)
  const int32_t* slots = nullptr;
  int32_t count = 0;
  RotationPart parts[kRotationParts];
};
void rotate_and_cache(const RotationsRun& run, cudaStream_t stream);

// Whether the halves of what is rotated, and of what is not, have whole vectors.
constexpr bool can_rotate_vectors(int64_t head_dim, int64_t width, bool neighbours) {
  return !neighbours && width / 2 % kVectorElements == 0 &&
         (head_dim - width) / 2 % kVectorElements == 0;
}

}  // namespace snug::backends::cuda
