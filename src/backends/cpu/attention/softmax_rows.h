// Softmax and its loss over rows of logits, in runs of consecutive logits; shared by the kinds of
// cross-entropy. Leaf functions without threads.
#pragma once

#include <cmath>
#include <cstdint>

#include "backends/cpu/kernels.h"
#include "backends/invocation.h"

namespace snug::backends::cpu {

float logit_at(const void* logits, Element element, int64_t index);

// The largest of some logits, and the sum of exp(logit - largest) over them.
struct Statistics {
  float largest;
  float sum;
  float lse() const { return largest + std::log(sum); }
  // -log p of a logit. The small difference is computed before the large term is added.
  float loss(float logit) const { return std::log(sum) - (logit - largest); }
};

// Consecutive logits of a row.
struct LogitRun {
  const void* data;
  Element element;
  int64_t count;
};

Statistics statistics_of(const LogitRun& run, const SoftmaxKernels& kernels);

float sum_of(const LogitRun& run, const SoftmaxKernels& kernels);

// How a loss of a vocabulary is smoothed: `smoothing` is the share of the loss that is the mean
// over the vocabulary, 0 for none.
struct LossSmoothing {
  float smoothing = 0.0F;
  int64_t vocab = 1;
  bool is_there() const { return smoothing > 0.0F; }
  // What the loss wants of every probability, and of the target's besides.
  float of_each() const { return smoothing / static_cast<float>(vocab); }
  float of_target() const { return 1.0F - smoothing; }
  // What stands for the target's logit in the loss of a row whose logits have this sum.
  float logit(float target_logit, float sum) const {
    return target_logit + smoothing * (sum / static_cast<float>(vocab) - target_logit);
  }
};

Statistics merged(const Statistics& a, const Statistics& b);

// gradient = (softmax - onehot) * scale, or what smoothing makes of it. `gradient` may be the same
// address as the logits. `target` counts from the run's first logit and may be outside of it. With
// a cap the logits are f32 values cap tanh(z / cap), and the gradient is that of z.
struct GradientRun {
  void* data;
  Element element;
  int64_t target;
  float lse;
  float scale;
  float cap;  // the softcap of logits; 0 means none
  LossSmoothing smoothing{};
};

void make_gradient(const LogitRun& run, const GradientRun& gradient, const SoftmaxKernels& kernels);

// Fails a CHECK when a target lies outside the vocabulary.
int64_t checked_target(int32_t target, int64_t vocab);

// The weight of each token in the loss, from inverse_tokens: one number for all, or one per token.
struct TokenFactors {
  const float* data;
  int64_t step;  // 0 means one number for all tokens
  float operator[](int64_t token) const { return data[token * step]; }
};
TokenFactors factors_of(const Buffer& inverse_tokens);

// loss = sum of losses times their weights, in token order and fp64, so that it does not depend on
// threads or chunks.
void sum_losses(const float* losses, int64_t tokens, const TokenFactors& factors,
                const Buffer& loss);

}  // namespace snug::backends::cpu
