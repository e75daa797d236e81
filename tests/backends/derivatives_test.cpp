// The form of derivatives, over the tables of the operation suite: for every choice of inputs that
// want a gradient, what is emitted obeys the shape rules, writes each contribution once, and writes
// nothing for inputs that want none. That the numbers are right is shown in gradients_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "../base/captured_stream.h"
#include "gradient_check.h"
#include "program/ir/tape.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/kind.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/matmul.h"
#include "program/text/text.h"

namespace snug::backends::test {
namespace {

using program::Attributes;
using program::DType;
using program::kNone;
using program::Operation;
using program::Program;
using program::Shape;
using program::Tensor;
using program::TensorId;

class RecordingTape : public program::Tape {
 public:
  RecordingTape(Program program, std::set<TensorId> wanted)
      : program_(std::move(program)), wanted_(std::move(wanted)) {}

  const Program& program() const override { return program_; }
  bool wants(TensorId tensor) const override { return wanted_.contains(tensor); }
  // Every floating-point output of the operation has one, except for measures.
  TensorId gradient(TensorId output) const override {
    const auto found = gradients.find(output);
    return found == gradients.end() ? kNone : found->second;
  }
  TensorId contribute(TensorId input) override {
    EXPECT_TRUE(wants(input)) << program_.tensor(input).name;
    const Tensor like = program_.tensor(input);
    contributions.emplace_back(input, add(like.name + ".contribution", like.shape, like.dtype));
    return contributions.back().second;
  }
  void pass_through(TensorId input, TensorId passed) override {
    EXPECT_TRUE(wants(input));
    EXPECT_EQ(program_.tensor(input).shape, program_.tensor(passed).shape);
    passed_through.push_back(input);
  }
  void emit(Attributes attributes, std::vector<TensorId> reads,
            std::vector<TensorId> writes) override {
    Operation operation;
    operation.attributes = std::move(attributes);
    operation.reads = std::move(reads);
    operation.writes = std::move(writes);
    EXPECT_EQ(program::shape_error({program_, operation}), "")
        << program::name_of(operation.kind());
    emitted.push_back(operation);
  }
  TensorId temporary(const char* suffix, const Shape& shape, DType dtype) override {
    temporaries.push_back(add(suffix, shape, dtype));
    return temporaries.back();
  }

  bool is_read(TensorId) const override { return false; }
  void later(std::function<void()>) override { ADD_FAILURE() << "nothing follows the operation"; }

  TensorId add(std::string name, const Shape& shape, DType dtype) {
    Tensor tensor;
    tensor.name = std::move(name) + std::to_string(program_.tensors.size());
    tensor.shape = shape;
    tensor.dtype = dtype;
    program_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(program_.tensors.size() - 1);
  }

  std::map<TensorId, TensorId> gradients;
  std::vector<std::pair<TensorId, TensorId>> contributions;
  std::vector<TensorId> passed_through;
  std::vector<TensorId> temporaries;
  std::vector<Operation> emitted;

 private:
  Program program_;
  std::set<TensorId> wanted_;
};

constexpr const char* kTensors = R"(program derivatives
tensor x (8, 4) bf16
tensor bt (6, 4) bf16
tensor flat (4) f32
tensor random (2) i32
tensor bounds (3, 2) i32
tensor k (8, 2) bf16
tensor v (8, 2) bf16
tensor table (8, 2) f32
)";

class Derivatives : public ::testing::TestWithParam<program::Kind> {};

// Contributions and inputs passed through are together the wanted inputs, and all that was asked of
// the tape is written by exactly one operation.
void check(const RecordingTape& tape, const std::multiset<TensorId>& wanted) {
  std::multiset<TensorId> reached(tape.passed_through.begin(), tape.passed_through.end());
  std::multiset<TensorId> asked(tape.temporaries.begin(), tape.temporaries.end());
  for (const auto& [input, contribution] : tape.contributions) {
    reached.insert(input);
    asked.insert(contribution);
  }
  EXPECT_EQ(reached, wanted);
  std::multiset<TensorId> written;
  for (const Operation& operation : tape.emitted)
    for (const TensorId id : operation.writes)
      if (!tape.gradients.contains(id)) written.insert(id);  // a training form writes outputs too
  EXPECT_EQ(written, asked);
}

void check_choices(const OperationCase& operation_case) {
  const Program& program = operation_case.program;
  const Operation& operation = operation_case.operation();
  const std::vector<TensorId> inputs = differentiable_inputs(operation_case);
  for (unsigned choice = 0; choice < 1U << inputs.size(); ++choice) {
    std::multiset<TensorId> wanted;
    for (size_t i = 0; i < inputs.size(); ++i)
      if ((choice >> i & 1U) != 0) wanted.insert(inputs[i]);
    RecordingTape tape(program, {wanted.begin(), wanted.end()});
    for (const TensorId output : operation.writes) {
      const Tensor like = program.tensor(output);
      tape.gradients[output] = tape.add("d" + like.name, like.shape, like.dtype);
    }
    differentiate(operation, tape);
    const bool replaces = program::traits_of(operation).has_training_form;
    EXPECT_TRUE(choice != 0 || replaces || tape.emitted.empty());
    check(tape, wanted);
    if (choice == 0 || replaces || program::traits_of(operation).is_loss()) continue;
    RecordingTape nothing_flows(program, {wanted.begin(), wanted.end()});
    differentiate(operation, nothing_flows);
    EXPECT_TRUE(nothing_flows.emitted.empty());
    EXPECT_TRUE(nothing_flows.passed_through.empty());
  }
}

TEST_P(Derivatives, WriteWhatIsWanted) {
  int checked = 0;
  for (const OperationCase& operation_case : cases_of(GetParam(), kAllTypes[1])) {
    if (!is_differentiated(operation_case)) continue;
    SCOPED_TRACE(operation_case.name);
    check_choices(operation_case);
    ++checked;
  }
  EXPECT_GE(checked, 3);
}

INSTANTIATE_TEST_SUITE_P(, Derivatives, ::testing::ValuesIn(differentiable_kinds()),
                         [](const auto& test) {
                           return std::string(program::name_of(test.param));
                         });

// What one operation emits when all its inputs want a gradient.
std::vector<Operation> emitted_by(const std::string& line) {
  const Program program = program::parse_text(std::string(kTensors) + line);
  const Operation operation = program.operations[0];
  RecordingTape tape(program, {operation.reads.begin(), operation.reads.end()});
  for (const TensorId output : operation.writes) {
    const Tensor like = program.tensor(output);
    tape.gradients[output] = tape.add("d" + like.name, like.shape, like.dtype);
  }
  differentiate(operation, tape);
  return tape.emitted;
}

TEST(Derivative, CarriesItsAttributes) {
  const auto matmul = emitted_by("y (8, 6) bf16 = matmul(x, bt) {transpose_b, alpha 0.5}");
  ASSERT_EQ(matmul.size(), 2U);
  for (const Operation& operation : matmul)
    EXPECT_EQ(operation.attributes.get<program::Matmul>().alpha, 0.5F);

  const auto rope = emitted_by("y (8, 4) bf16 = rope(x, table) {head_dim 2}");
  EXPECT_EQ(rope.at(0).attributes.get<program::Rope>(),
            (program::Rope{.head_dim = 2, .inverse = true}));

  const auto dropout =
      emitted_by("y (8, 4) bf16 = dropout(x, random) {probability 0.5, seed 9, site 4}");
  EXPECT_EQ(dropout.at(0).attributes.get<program::Dropout>(),
            (program::Dropout{.probability = 0.5F, .row_length = 1, .seed = 9, .site = 4}));

  const auto norm = emitted_by("y (8, 4) bf16 = rms_norm(x, flat) {epsilon 0.5}");
  EXPECT_EQ(norm.at(0).attributes.get<program::RmsNormGrad>(),
            (program::RmsNormGrad{.epsilon = 0.5F, .weight_gradient = true}));

  const auto attention = emitted_by(
      "y (8, 4) bf16, l (2, 8) f32 = attention(x, k, v, bounds, bounds) "
      "{heads 2, kv_heads 1, head_dim 2, scale 0.5, causal false, window 3}");
  EXPECT_EQ(
      attention.at(0).attributes.get<program::AttentionGrad>(),
      (program::AttentionGrad{
          .heads = 2, .kv_heads = 1, .head_dim = 2, .scale = 0.5F, .causal = false, .window = 3}));
}

TEST(DerivativeDeathTest, KindsWithoutOneAreABug) {
  EXPECT_TRUE(snug::testing::dies([&] { emitted_by("y (4) f32 = sum_rows(x)"); },
                                  "sum_rows has no derivative"));
}

}  // namespace
}  // namespace snug::backends::test
