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
#include <vector>

#include "program/ir/operands.h"
#include "program/ir/program.h"

namespace snug::program {

//
// A rule asks by operands (rule.rank(Rope::kX, 2)), which have to be there; by a tensor with what
// to call it only where an operand is one of several, or any of two.
class ShapeRule {
 public:
  // A tensor and the name the kind gives it.
  struct NamedTensor {
    std::string_view what;
    const Tensor& tensor;
  };

  // Checks the operation of a view that outlives the rule.
  explicit ShapeRule(const OperationView& view) : view_(view) {}

  template <typename Struct>
  NamedTensor named(const Operand<Struct>& operand) const {
    return {operand.name.text, view_[operand]};
  }

  void require(bool condition, std::string_view problem);
  void rank(const NamedTensor& operand, int expected);
  void shape(const NamedTensor& operand, const Shape& expected);
  void type(const NamedTensor& operand, DType expected);
  // All of one element type, which is one that is computed with.
  template <typename Struct>
  void same_type(std::initializer_list<Operand<Struct>> operands) {
    check_same(all_named(operands));
  }
  // All f64, or each f32 or bf16, or each f32 or f16.
  template <typename Struct>
  void mixed_types(std::initializer_list<Operand<Struct>> operands) {
    check_mixed(all_named(operands));
  }
  void mixed_types(std::initializer_list<NamedTensor> operands) { check_mixed(operands); }
  // f32 or f64, of this shape.
  void measure(const NamedTensor& operand, const Shape& expected);
  // i32, of this shape.
  void index(const NamedTensor& operand, const Shape& expected);

  template <typename Struct>
  void rank(const Operand<Struct>& operand, int expected) {
    rank(named(operand), expected);
  }
  template <typename Struct>
  void shape(const Operand<Struct>& operand, const Shape& expected) {
    shape(named(operand), expected);
  }
  template <typename Struct>
  void type(const Operand<Struct>& operand, DType expected) {
    type(named(operand), expected);
  }
  template <typename Struct>
  void measure(const Operand<Struct>& operand, const Shape& expected) {
    measure(named(operand), expected);
  }
  template <typename Struct>
  void index(const Operand<Struct>& operand, const Shape& expected) {
    index(named(operand), expected);
  }

  // Empty when nothing was violated.
  const std::string& error() const { return error_; }

 private:
  template <typename Struct>
  std::vector<NamedTensor> all_named(std::initializer_list<Operand<Struct>> operands) const {
    std::vector<NamedTensor> tensors;
    for (const Operand<Struct>& operand : operands) tensors.push_back(named(operand));
    return tensors;
  }
  void check_same(const std::vector<NamedTensor>& operands);
  void check_mixed(const std::vector<NamedTensor>& operands);
  void fail(const NamedTensor& operand, const std::string& problem);

  const OperationView& view_;
  std::string error_;
};

}  // namespace snug::program
