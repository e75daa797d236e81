// One operation of the reference on fp64 values that a test gives.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "comparison.h"
#include "operation_check.h"

namespace snug::backends::test {

inline constexpr Types kF64{"f64", program::DType::f64, program::DType::f64, program::DType::f64,
                            true};

class Reference : public ::testing::Test {
 protected:
  // Values of the operation's outputs, in the order of writes and then updates.
  std::vector<Values> run(const OperationCase& operation_case) {
    const RunResult result = oracle_of(operation_case);
    EXPECT_TRUE(result.violations.empty());
    std::vector<Values> values;
    for (const program::TensorId id : operation_case.operation().writes)
      values.push_back(result.values.at(id));
    for (const program::TensorId id : operation_case.operation().updates)
      values.push_back(result.values.at(id));
    return values;
  }

  void expect_near(const Values& found, const Values& expected, double tolerance = 1e-12) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
  }

  CaseBuilder builder() { return {kF64, random_}; }
  program::TensorId f64(CaseBuilder& builder, const program::Shape& shape, Values values) {
    return builder.input(shape, program::DType::f64, std::move(values));
  }

  Random random_{test_seed()};
};

}  // namespace snug::backends::test
