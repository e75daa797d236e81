// The weight of each token, from the operand inverse_tokens.
#pragma once

#include "backends/cuda/loss/kernels/cross_entropy.h"
#include "backends/cuda/product/matrices.h"

namespace snug::backends::cuda {

inline TokenFactors factors_of(const Buffer& inverse_tokens) {
  return {floats_of(inverse_tokens), inverse_tokens.elements() > 1 ? 1 : 0};
}

}  // namespace snug::backends::cuda
