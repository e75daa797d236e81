#include "program/kinds/shape_rule.h"

#include <fmt/format.h>

namespace snug::program {
namespace {

bool is_computed_with(DType type) { return base::is_float(type); }

}  // namespace

void ShapeRule::require(bool condition, std::string_view problem) {
  if (!condition && error_.empty()) error_ = problem;
}

void ShapeRule::fail(const NamedTensor& operand, const std::string& problem) {
  if (error_.empty())
    error_ = fmt::format("{} '{}' {}", operand.what, operand.tensor.name, problem);
}

void ShapeRule::rank(const NamedTensor& operand, int expected) {
  if (operand.tensor.shape.rank() != expected)
    fail(operand, fmt::format("has shape {}, expected {} dimension{}",
                              to_string(operand.tensor.shape), expected, expected == 1 ? "" : "s"));
}

void ShapeRule::shape(const NamedTensor& operand, const Shape& expected) {
  if (operand.tensor.shape != expected)
    fail(operand, fmt::format("has shape {}, expected {}", to_string(operand.tensor.shape),
                              to_string(expected)));
}

void ShapeRule::type(const NamedTensor& operand, DType expected) {
  if (operand.tensor.dtype != expected)
    fail(operand,
         fmt::format("is {}, expected {}", name_of(operand.tensor.dtype), name_of(expected)));
}

void ShapeRule::check_same(const std::vector<NamedTensor>& operands) {
  check_mixed(operands);
  for (const NamedTensor& operand : operands) type(operand, operands.front().tensor.dtype);
}

void ShapeRule::check_mixed(const std::vector<NamedTensor>& operands) {
  const NamedTensor& first = operands.front();
  const NamedTensor* narrow = nullptr;  // the first tensor with a 16-bit type
  for (const NamedTensor& operand : operands) {
    const DType type = operand.tensor.dtype;
    if (!is_computed_with(type))
      fail(operand, fmt::format("is {}, expected f32, bf16, f16 or f64", name_of(type)));
    if ((type == DType::f64) != (first.tensor.dtype == DType::f64))
      fail(operand, fmt::format("is {} next to {} '{}' of {}; f64 stands alone", name_of(type),
                                first.what, first.tensor.name, name_of(first.tensor.dtype)));
    if (type != DType::bf16 && type != DType::f16) continue;
    if (narrow == nullptr) narrow = &operand;
    if (type != narrow->tensor.dtype)
      fail(operand, fmt::format("is {} next to {} '{}' of {}; the two do not meet", name_of(type),
                                narrow->what, narrow->tensor.name, name_of(narrow->tensor.dtype)));
  }
}

void ShapeRule::measure(const NamedTensor& operand, const Shape& expected) {
  const DType type = operand.tensor.dtype;
  if (type != DType::f32 && type != DType::f64)
    fail(operand, fmt::format("is {}, expected f32 or f64", name_of(type)));
  shape(operand, expected);
}

void ShapeRule::index(const NamedTensor& operand, const Shape& expected) {
  type(operand, DType::i32);
  shape(operand, expected);
}

}  // namespace snug::program
