// What the forms of AdamW share: their scalars on the device, their constants, whole tensors.
#pragma once

#include "backends/cuda/kernels/optimizer.h"
#include "backends/cuda/matrices.h"
#include "base/error.h"

namespace snug::backends::cuda {

inline AdamWScalars adamw_scalars(const Invocation& invocation) {
  return {floats_of(invocation.reads[1]), floats_of(invocation.reads[2]),
          integers_of(invocation.reads[3])};
}

template <typename Attributes>
AdamWConstants adamw_constants(const Attributes& adamw) {
  return {adamw.beta1, adamw.beta2, adamw.epsilon, adamw.weight_decay, adamw.seed, adamw.site};
}

// As one row; an optimizer's tensors have no gaps.
inline Matrix whole_matrix(const Buffer& buffer) {
  Matrix matrix = matrix_of(buffer);
  walk_flat({&matrix});
  SNUG_CHECK(matrix.rows == 1, "an optimizer's tensor is not contiguous");
  return matrix;
}

}  // namespace snug::backends::cuda
