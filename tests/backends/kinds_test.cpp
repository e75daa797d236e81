// What every kind keeps to, over the tables of the operation suite.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <vector>

#include "operation_check.h"
#include "program/ir/operands.h"
#include "program/kinds/dispatch.h"
#include "program/kinds/kind.h"
#include "program/work/extent.h"

namespace snug::backends::test {
namespace {

using program::Kind;
using program::Program;
using program::Tensor;
using program::TensorId;

class Kinds : public ::testing::TestWithParam<Kind> {};

// A few of a kind's cases, of each list of operands.
std::vector<OperationCase> some_cases_of(Kind kind) {
  constexpr size_t kPerForm = 3;
  std::map<std::vector<std::string_view>, size_t> seen;
  std::vector<OperationCase> cases = cases_of(kind, kAllTypes[1]);
  std::erase_if(cases, [&](const OperationCase& operation_case) {
    std::vector<std::string_view> form;
    for (const program::NamedOperand& operand : program::operands_of(operation_case.operation()))
      form.push_back(operand.name.text);
    return seen[form]++ >= kPerForm;
  });
  return cases;
}

std::string error_with(const OperationCase& operation_case, TensorId id, const Tensor& changed) {
  Program program = operation_case.program;
  program.tensor(id) = changed;
  return program::shape_error({program, program.operations[0]});
}

// Whether the kind has any number of tensors under this name.
bool is_repeated(const program::Operation& operation, program::OperandName name) {
  return program::dispatch<bool>(operation.attributes, [&]<typename Struct>(const Struct&) {
    return std::any_of(
        Struct::kOperands.begin(), Struct::kOperands.end(),
        [&](const auto& operand) { return operand.name == name && operand.repeated; });
  });
}

// No kind computes with i64, and no operand of four dimensions goes with the others; only what is
// repeated may have any shape.
TEST_P(Kinds, look_at_type_and_shape_of_every_operand) {
  for (const OperationCase& operation_case : some_cases_of(GetParam())) {
    ASSERT_EQ(program::shape_error(operation_case.view()), "");
    for (const auto& operand : program::operands_of(operation_case.operation())) {
      Tensor changed = operation_case.program.tensor(operand.tensor);
      changed.dtype = program::DType::i64;
      EXPECT_NE(error_with(operation_case, operand.tensor, changed), "")
          << operand.name.text << " may be i64: " << operation_case.name;
      changed = operation_case.program.tensor(operand.tensor);
      changed.shape = {3, 1, 2, 5};
      if (is_repeated(operation_case.operation(), operand.name)) continue;
      EXPECT_NE(error_with(operation_case, operand.tensor, changed), "")
          << operand.name.text << " may have any shape: " << operation_case.name;
    }
  }
}

// What is made again in the backward pass, and never kept for it, costs one pass over its operands.
TEST_P(Kinds, are_cheap_where_they_say_so) {
  if (!program::traits_of(GetParam()).is_cheap()) return;
  constexpr double kMaxFlopsPerElement = 8;
  for (const OperationCase& operation_case : cases_of(GetParam(), kAllTypes[0])) {
    const program::Cost cost = program::cost(operation_case.view(), {});
    int64_t most = 0;
    double bytes = 0;
    for (const auto& operand : program::operands_of(operation_case.operation())) {
      const Tensor& tensor = operation_case.program.tensor(operand.tensor);
      most = std::max(most, tensor.shape.elements());
      bytes += static_cast<double>(tensor.bytes());
    }
    EXPECT_LE(cost.flops, kMaxFlopsPerElement * static_cast<double>(most)) << operation_case.name;
    EXPECT_LE(cost.bytes, bytes) << operation_case.name;
    EXPECT_TRUE(operation_case.operation().updates.empty()) << operation_case.name;
  }
}

// Values of the case's tensors that say how much there is to do, as a host would have them.
struct HostSides {
  explicit HostSides(const OperationCase& operation_case) {
    for (const auto& [name, rows_of] : program::traits_of(operation_case.operation()).extents) {
      if (name.empty()) continue;
      const TensorId id = program::find_operand(operation_case.operation(), name);
      const Values& input = operation_case.inputs.at(id);
      bounds.set(id, values.emplace_back(input.begin(), input.end()));
    }
  }
  std::list<std::vector<int32_t>> values;
  program::BatchBounds bounds;
};

// A kind that names extents says how much follows from them, never more than shapes allow.
TEST_P(Kinds, say_how_much_a_batch_asks_for) {
  for (const OperationCase& operation_case : cases_of(GetParam(), kAllTypes[0])) {
    SCOPED_TRACE(operation_case.name);
    const program::Extent most = program::capacity_of(operation_case.view());
    EXPECT_EQ(most != program::Extent(), program::traits_of(GetParam()).has_extent());
    const HostSides host(operation_case);
    const program::Extent extent = program::extent_of(operation_case.view(), host.bounds);
    EXPECT_LE(extent.rows, most.rows + 1e-9);
    EXPECT_LE(extent.keys, most.keys + 1e-9);
    EXPECT_LE(extent.pairs, most.pairs + 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(, Kinds, ::testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

}  // namespace
}  // namespace snug::backends::test
