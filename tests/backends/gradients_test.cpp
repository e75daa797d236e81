// The derivative of every differentiable kind against central finite differences, in fp64 on the
// reference backend, over the same tables that the operation suite runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "backends/reference/reference_backend.h"
#include "backends/reference/with_float_type.h"
#include "gradient_check.h"
#include "program/kinds/kind.h"

namespace snug::backends::test {
namespace {

using program::Kind;
using program::TensorId;

constexpr double kTolerance = 1e-6;
// Differences of sums of order one are exact to about 1e-16 / 1e-5 an element.
constexpr double kNoise = 1e-8;
constexpr size_t kElements = 24;
constexpr int64_t kLargestCase = 6000;

int64_t float_elements(const OperationCase& operation_case) {
  int64_t count = 0;
  for (const program::Tensor& tensor : operation_case.program.tensors)
    if (base::is_float(tensor.dtype) && !tensor.is_view()) count += tensor.shape.elements();
  return count;
}

// Up to kElements of each input, drawn at random.
GradientCase gradient_case_of(OperationCase forward, const std::vector<TensorId>& wanted,
                              Random& random) {
  GradientCase result;
  for (const TensorId id : wanted) {
    std::vector<size_t> all(forward.inputs.at(id).size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::shuffle(all.begin(), all.end(), random);
    all.resize(std::min(all.size(), kElements));
    result.elements[id] = all;
  }
  // What no segment covers is unwritten memory in the tables; differences need numbers.
  for (auto& [id, values] : forward.inputs)
    for (double& value : values)
      if (std::isnan(value)) value = 0.5;
  const auto& writes = forward.operation().writes;
  const auto gradient_of = [&](TensorId output) {
    return normal(random, forward.program.tensor(output).shape.elements());
  };
  if (program::traits_of(forward.operation()).is_loss())
    result.output_gradients[find_operand(forward.operation(), program::OperandName("loss"))] = {
        1.0};
  else
    result.output_gradients[writes[0]] = gradient_of(writes[0]);
  if (forward.operation().kind() == Kind::delta_gates)
    result.output_gradients[writes[1]] = gradient_of(writes[1]);
  // A route's sums have one too, which its derivative adds to that of its weights.
  if (const TensorId sums = find_operand(forward.operation(), program::OperandName("sums"));
      sums != program::kNone)
    result.output_gradients[sums] = gradient_of(sums);
  result.forward = std::move(forward);
  return result;
}

void check(const GradientCase& gradient_case) {
  const Inputs expected = finite_differences(gradient_case);
  const Inputs found = derivatives(gradient_case);
  for (const auto& [input, values] : expected) {
    ASSERT_TRUE(found.contains(input)) << "no gradient of input " << input;
    double difference = 0;
    double norm = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(found.at(input)[i] - values[i], 2);
      norm += std::pow(values[i], 2);
    }
    EXPECT_LE(std::sqrt(difference), kTolerance * std::sqrt(norm) + kNoise)
        << "gradient of '" << gradient_case.forward.program.tensor(input).name << "'";
  }
}

class Gradients : public ::testing::TestWithParam<Kind> {};

TEST_P(Gradients, agree_with_finite_differences) {
  Random random(test_seed());
  int checked = 0;
  for (const OperationCase& operation_case : cases_of(GetParam(), kAllTypes[0])) {
    if (!is_differentiated(operation_case)) continue;
    if (float_elements(operation_case) > kLargestCase) continue;
    SCOPED_TRACE(fmt::format("{}, SNUG_TEST_SEED={}", operation_case.name, test_seed()));
    check(gradient_case_of(operation_case, differentiable_inputs(operation_case), random));
    ++checked;
  }
  EXPECT_GE(checked, 3);
}

// Each input alone, as where only some weights train.
TEST_P(Gradients, of_one_input_need_no_other) {
  Random random(test_seed());
  int checked = 0;
  for (const OperationCase& operation_case : cases_of(GetParam(), kAllTypes[0])) {
    const int64_t size = float_elements(operation_case);
    if (!is_differentiated(operation_case) || size < 40 || size > kLargestCase) continue;
    SCOPED_TRACE(fmt::format("{}, SNUG_TEST_SEED={}", operation_case.name, test_seed()));
    for (const TensorId input : differentiable_inputs(operation_case))
      check(gradient_case_of(operation_case, {input}, random));
    if (++checked == 3) break;
  }
  EXPECT_GE(checked, 1);
}

INSTANTIATE_TEST_SUITE_P(, Gradients, ::testing::ValuesIn(differentiable_kinds()),
                         [](const auto& test) {
                           return std::string(program::name_of(test.param));
                         });

}  // namespace
}  // namespace snug::backends::test
