// Helps the rows of objectives: it goes on from a forward program that ends in the losses of
// tokens, whose own `loss` becomes one of tokens that nobody reads.
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

  // Numbers of the type that is measured in.
  program::TensorId add(std::string_view name, const program::Shape& shape, program::Role role,
                        program::Lifetime lifetime);
  // One that the host gives with each step, and integers that it gives with each batch.
  program::TensorId number(std::string_view name);
  program::TensorId integers(std::string_view name, const program::Shape& shape);
  // What the host reads: kMeasuresName and kLossName.
  program::TensorId measures(int64_t count);
  program::TensorId loss();
  // (segments) The log-probabilities of the model that is compared with: the host gives them with
  // the batch, or a program before makes them.
  program::TensorId reference(ReferenceModel from);

  // (segments) The sum of losses over each segment of `bounds`, times `scale`, and the operation
  // that makes it.
  program::TensorId sums(std::string_view name, program::TensorId bounds, float scale);

 private:
  program::TensorId losses_ = program::kNone;
  program::TensorId bounds_ = program::kNone;
  program::Shape segments_;
  program::DType type_ = program::DType::f32;
};

}  // namespace snug::methods
