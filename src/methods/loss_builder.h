// The builder that objectives share. It extends a forward program that ends in the losses of
// tokens; the mean of these, formerly `loss`, is kept as `token_loss`, which nothing reads.
#pragma once

#include <cstdint>
#include <string_view>

#include "methods/objective.h"
#include "program/ir/builder.h"

namespace snug::methods {

// The forward program with the losses of its tokens smoothed (program/kinds/loss/cross_entropy.h).
program::Program with_smoothing(program::Program forward, float smoothing);

class LossBuilder : public program::Builder {
 public:
  // The losses are those of logits that are divided by the temperature. One of 1 changes no bit;
  // others are for heads without a bias.
  explicit LossBuilder(const program::Program& forward, float temperature = 1.0F);

  program::TensorId losses() const { return losses_; }  // (tokens) f32, -log p of each target
  program::TensorId bounds() const { return bounds_; }  // (segments, 2) i32
  const program::Shape& segments() const { return segments_; }  // (segments)
  const program::Shape& tokens() const { return tokens_; }      // (tokens)

  // Adds a tensor with the element type of the losses.
  program::TensorId add(std::string_view name, const program::Shape& shape, program::Role role,
                        program::Lifetime lifetime);
  // Adds a number that the host sets before each step, and tensors of numbers and of integers that
  // it sets before each batch.
  program::TensorId number(std::string_view name);
  program::TensorId numbers(std::string_view name, const program::Shape& shape);
  program::TensorId integers(std::string_view name, const program::Shape& shape);
  // Adds the results that the host reads: kMeasuresName and kLossName.
  program::TensorId measures(int64_t count);
  program::TensorId loss();
  // Adds the log-probabilities of the reference model, of segments or of tokens, which the host
  // sets with each batch, or an earlier program computes.
  program::TensorId reference(ReferenceModel from, const program::Shape& shape);

  // Adds an operation that sums the losses over each segment of `bounds`, times `scale`; returns
  // the sums (segments).
  program::TensorId sums(std::string_view name, program::TensorId bounds, float scale);
  // Adds an operation that makes the log-probabilities (tokens) of the losses.
  program::TensorId of_tokens(std::string_view name, program::Lifetime lifetime);

 private:
  program::TensorId losses_ = program::kNone;
  program::TensorId bounds_ = program::kNone;
  program::Shape segments_;
  program::Shape tokens_;
  program::DType type_ = program::DType::f32;
};

}  // namespace snug::methods
