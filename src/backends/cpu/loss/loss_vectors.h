// The vectors that a head can have besides its weight in a linear cross-entropy: a bias, which is
// added to the product, and a gain, which then multiplies each logit before the softcap. Their
// gradients are sums over all rows.
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/loss/loss_shape.h"
#include "backends/cpu/rows.h"
#include "backends/loss_operands.h"

namespace snug::backends::cpu {

class LossVectors {
 public:
  // Room for the gains in f32, and for gradients in f32 until all chunks are added.
  static int64_t scratch_floats(const LossShape& shape);

  // `scratch` has scratch_floats(shape) floats. The operands must outlive the object.
  LossVectors(const LossShape& shape, const LossOperands<Buffer>& operands, float* scratch,
              const Kernels& kernels);

  // Turns a row's products into logits [first, first + count). The bias is added to the products in
  // place; `logits` may be `product`.
  void finish_logits(float* product, float* logits, int64_t first, int64_t count) const;
  // Adds the contribution of the gradients `dlogits`, whose first column is `first`, to the
  // vectors' gradients, and turns `dlogits` into the gradients of the products. `before_gain` holds
  // the input of the gain.
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
  float* gains_ = nullptr;  // (vocab) each; null where not needed
  float* dgains_ = nullptr;
  float* dbiases_ = nullptr;
  float* part_ = nullptr;  // sums over a chunk for a block of columns
};

}  // namespace snug::backends::cpu
