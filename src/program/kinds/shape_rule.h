// Collects what an operation's lists must look like and keeps the first violation, in words.
//
// Element types. Arithmetic is defined on f64 alone, or on f32 and one of bf16 and f16 in any
// mixture: bf16 activations meet f32 gradients, norms weights of the other type, logits leave a
// bf16 product in f32. What only measures (losses, norms, log-sum-exps, tables of angles) is f32,
// or f64 in f64 programs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "program/program.h"

namespace snug::program {

class ShapeRule {
 public:
  // A tensor and the name the kind gives it.
  struct NamedTensor {
    std::string_view what;
    const Tensor& tensor;
  };

  void require(bool condition, std::string_view problem);
  void rank(const NamedTensor& operand, int expected);
  void shape(const NamedTensor& operand, const Shape& expected);
  void type(const NamedTensor& operand, DType expected);
  // All of one element type, which is one that is computed with.
  void same_type(std::initializer_list<NamedTensor> operands);
  // All f64, or each f32 or bf16, or each f32 or f16.
  void mixed_types(std::initializer_list<NamedTensor> operands);
  // f32 or f64, of this shape.
  void measure(const NamedTensor& operand, const Shape& expected);
  // i32, of this shape.
  void index(const NamedTensor& operand, const Shape& expected);

  // Empty when nothing was violated.
  const std::string& error() const { return error_; }

 private:
  void fail(const NamedTensor& operand, const std::string& problem);

  std::string error_;
};

}  // namespace snug::program
