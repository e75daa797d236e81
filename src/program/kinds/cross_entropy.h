// Cross-entropy of a language model's head. Targets below 0 carry no loss. `inverse_tokens` (1) f32
// is one over the trained tokens of the whole step, so losses and gradients of micro-batches just
// add up.
#pragma once

#include <cstdint>

#include "program/kinds/field.h"

namespace snug::program {

// reads: logits (tokens, vocab), targets (tokens) i32, inverse_tokens (1).
// writes: losses (tokens) f32, -log p(target), 0 without loss; loss (1) f32 = sum(losses) *
// inverse_tokens.
struct CrossEntropy {
  bool operator==(const CrossEntropy&) const = default;
  static constexpr std::tuple<> kFields{};
};

// reads: logits, targets, inverse_tokens. writes: dlogits = (softmax - onehot) * inverse_tokens,
// the derivative of `loss`; zero rows without loss.
struct CrossEntropyGrad {
  bool operator==(const CrossEntropyGrad&) const = default;
  static constexpr std::tuple<> kFields{};
};

// Fused: matmul (transpose_b) then cross_entropy, in chunks of rows that carry loss, so that at
// most chunk_rows x vocab logits exist. reads: hidden (tokens, d), weight (vocab, d), targets,
// inverse_tokens. writes: losses, loss.
struct LinearCrossEntropy {
  int64_t chunk_rows = 0;  // 0 until lowered
  bool operator==(const LinearCrossEntropy&) const = default;
  static constexpr auto kFields = std::tuple{Field{"chunk_rows", &LinearCrossEntropy::chunk_rows}};
};

// The training form: makes the gradient in the forward pass. reads as LinearCrossEntropy. writes:
// losses, loss, dhidden, then dweight (vocab, d) if `weight_gradient`; with `accumulate` dweight is
// updated instead. Expansion: matmul, cross_entropy, cross_entropy_grad, matmul, matmul.
struct LinearCrossEntropyTrain {
  int64_t chunk_rows = 0;
  bool weight_gradient = false;
  bool accumulate = false;
  bool operator==(const LinearCrossEntropyTrain&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"chunk_rows", &LinearCrossEntropyTrain::chunk_rows},
                 Field{"weight_gradient", &LinearCrossEntropyTrain::weight_gradient},
                 Field{"accumulate", &LinearCrossEntropyTrain::accumulate}};
};

}  // namespace snug::program
