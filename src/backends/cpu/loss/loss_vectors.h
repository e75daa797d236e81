// What a language model's head has besides its weight in a linear cross-entropy: a bias, which is
// added to what the product gives, and a gain, by which each logit is multiplied then, before it is
// capped. Their gradients are sums over all rows.
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/loss/loss_shape.h"
#include "backends/cpu/rows.h"
#include "backends/loss_operands.h"

namespace snug::backends::cpu {

class LossVectors {
 public:
  // Gains in f32, and gradients in f32 until all chunks are in them.
  static int64_t scratch_floats(const LossShape& shape);

  // `scratch`: scratch_floats(shape) floats. The operands must outlive it.
  LossVectors(const LossShape& shape, const LossOperands<Buffer>& operands, float* scratch,
              const Kernels& kernels);

  // Makes logits [first, first + count) of a row of what the product gave, which gets its bias;
  // `logits` may be `product`.
  void finish_logits(float* product, float* logits, int64_t first, int64_t count) const;
  // Takes the gradients of logits whose first column is `first`, with what was multiplied by the
  // gain, and turns them into those of the product.
  void take(const Rows& dlogits, const Rows& before_gain, int64_t first);
  void write_gradients() const;

 private:
  void sum_gains(const Rows& dlogits, const Rows& before_gain, int64_t first) const;
  void scale(const Rows& dlogits, int64_t first) const;
  void sum_biases(const Rows& dlogits, int64_t first) const;

  int64_t vocab_;
  float softcap_;
  const LossOperands<Buffer>& operands_;
  const Kernels& kernels_;
  float* gains_ = nullptr;  // (vocab) each, null where they are not needed
  float* dgains_ = nullptr;
  float* dbiases_ = nullptr;
  float* part_ = nullptr;  // sums of a block of columns in a chunk
};

}  // namespace snug::backends::cpu
