// The builder that objectives share. It extends a forward program that ends in the losses of
// tokens; the mean of these, formerly `loss`, is kept as `token_loss`, which nothing reads.
#pragma once

#include <cstdint>
#include <string_view>

#include "methods/objective.h"
#include "program/ir/builder.h"

namespace snug::methods {

class LossBuilder : public program::Builder {
 public:
  explicit LossBuilder(const program::Program& forward);

  program::TensorId losses() const { return losses_; }  // (tokens) f32, -log p of each target
  program::TensorId bounds() const { return bounds_; }  // (segments, 2) i32
  const program::Shape& segments() const { return segments_; }  // (segments)

  // Adds a tensor with the element type of the losses.
  program::TensorId add(std::string_view name, const program::Shape& shape, program::Role role,
                        program::Lifetime lifetime);
  // Adds a number that the host sets before each step, and a tensor of integers that it sets before
  // each batch.
  program::TensorId number(std::string_view name);
  program::TensorId integers(std::string_view name, const program::Shape& shape);
  // Adds the results that the host reads: kMeasuresName and kLossName.
  program::TensorId measures(int64_t count);
  program::TensorId loss();
  // Adds the log-probabilities (segments) of the reference model, which the host sets with each
  // batch, or an earlier program computes.
  program::TensorId reference(ReferenceModel from);

  // Adds an operation that sums the losses over each segment of `bounds`, times `scale`; returns
  // the sums (segments).
  program::TensorId sums(std::string_view name, program::TensorId bounds, float scale);

 private:
  program::TensorId losses_ = program::kNone;
  program::TensorId bounds_ = program::kNone;
  program::Shape segments_;
  program::DType type_ = program::DType::f32;
};

}  // namespace snug::methods
