// The bias of a language model's head in a linear cross-entropy: it is added to logits before their
// softmax, and its gradient is the sum of theirs over all rows.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {

// Adds bias[first, first + count) to logits (count).
void add_bias(const Buffer& bias, int64_t first, float* logits, int64_t count,
              const Kernels& kernels);

// The gradient of a bias (vocab), in f32 until all chunks are in it.
class BiasGradient {
 public:
  // The sums so far, and those of a block of columns in a chunk.
  static constexpr int64_t scratch_floats(int64_t vocab) { return 2 * reduction_stride(vocab); }

  // `scratch`: scratch_floats(vocab) floats.
  BiasGradient(int64_t vocab, float* scratch, const Kernels& kernels);
  // The gradients of logits whose first column is `first`.
  void add(const Rows& dlogits, int64_t first);
  void write(const Buffer& dbias) const;

 private:
  int64_t vocab_;
  float* sums_;
  float* part_;
  const Kernels& kernels_;
};

}  // namespace snug::backends::cpu
