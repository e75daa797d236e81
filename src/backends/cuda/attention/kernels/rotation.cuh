// Which elements of a head are rotated together, and how: shared by kernels that rotate what they
// read and what they have just made.
#pragma once

#include <cstdint>

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

// The shape of a head and of its rotation.
struct HeadForm {
  int64_t head_dim;
  int64_t width;
  bool neighbours;
};

// The pairs of a work item: the first elements of kCount pairs start at `column`, the second
// elements are `apart` further. Elements that are not rotated are also copied as pairs, of the two
// halves of the rest of the head.
struct PairPlace {
  int64_t head;
  int64_t i;  // index of the first among the rotated pairs
  int64_t column;
  int64_t apart;
  bool is_rotated;

  __device__ PairPlace(int64_t item, int count, const HeadForm& form) {
    const int64_t pairs = form.head_dim / 2 / count;
    const int64_t half = form.width / 2;
    head = item / pairs;
    i = item % pairs * count;
    is_rotated = i < half;
    apart = is_rotated ? half : (form.head_dim - form.width) / 2;
    column = head * form.head_dim + (is_rotated ? i : i + half);
    if (!is_rotated || !form.neighbours) return;
    apart = 1;
    column = head * form.head_dim + 2 * i;
  }
};

// Fused operations are written explicitly, so that all kernels give the same bits.
__device__ inline void rotate_pair(float& low, float& high, float cosine, float sine) {
  const float before = low;
  low = __fmaf_rn(before, cosine, -__fmul_rn(high, sine));
  high = __fmaf_rn(high, cosine, __fmul_rn(before, sine));
}

}  // namespace snug::backends::cuda
