// The guards of the operation suite, tried on backends that break each rule.
#include "guarded_run.h"

#include <gtest/gtest.h>

#include <functional>

#include "backends/reference/reference_backend.h"
#include "comparison.h"
#include "program/kinds/elementwise/elementwise.h"

namespace snug::backends::test {
namespace {

using program::DType;

// Runs as the reference does, and then does something wrong.
class Misbehaving : public reference::ReferenceBackend {
 public:
  explicit Misbehaving(std::function<void(const Invocation&)> wrong)
      : ReferenceBackend({}), wrong_(std::move(wrong)) {}
  void run(const Invocation& invocation) override {
    ReferenceBackend::run(invocation);
    wrong_(invocation);
  }

 private:
  std::function<void(const Invocation&)> wrong_;
};

class Guards : public ::testing::Test {
 protected:
  // c = a + b, as windows on wider tensors or on their own.
  OperationCase sum(bool views) {
    CaseBuilder builder(kAllTypes[0], random_);
    if (views) builder.use_views();
    const auto a = builder.activation({3, 5}, 2.0);
    const auto b = builder.activation({3, 5}, 2.0);
    const auto c = builder.output_activation({3, 5});
    return builder.finish("sum", program::Add{}, {a, b}, {c});
  }

  std::vector<std::string> violations(bool views, std::function<void(const Invocation&)> wrong) {
    Misbehaving backend(std::move(wrong));
    const OperationCase operation_case = sum(views);
    return guarded_run(backend, operation_case.program, operation_case.inputs).violations;
  }

  Random random_{test_seed()};
};

TEST_F(Guards, let_a_backend_that_keeps_the_rules_pass) {
  for (const bool views : {false, true})
    EXPECT_TRUE(violations(views, [](const Invocation&) {}).empty());
}

TEST_F(Guards, see_a_write_past_either_end) {
  for (const int64_t element : {-1, 15, 20}) {
    const auto found = violations(false, [&](const Invocation& invocation) {
      invocation.writes[0].as<float>()[element] = 0;
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found[0].find("tensor2"), std::string::npos) << found[0];
  }
}

TEST_F(Guards, see_a_write_between_the_rows_of_a_view) {
  const auto found = violations(
      true, [&](const Invocation& invocation) { invocation.writes[0].as<float>()[5] = 0; });
  EXPECT_EQ(found.size(), 1U);
}

TEST_F(Guards, see_a_changed_input) {
  const auto found = violations(
      false, [&](const Invocation& invocation) { invocation.reads[1].as<float>()[2] += 1; });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("tensor1"), std::string::npos) << found[0];
}

// A sum whose operation has scratch, which `tune` and `run` use.
class WithScratch : public Misbehaving {
 public:
  static constexpr int64_t kBytes = 1000;

  explicit WithScratch(std::function<void(const Invocation&)> use) : Misbehaving(use), use_(use) {}
  program::Workspace workspace(const program::OperationView&) const override {
    return {.bytes = kBytes};
  }
  void tune(const Invocation& invocation) override { use_(invocation); }

 private:
  std::function<void(const Invocation&)> use_;
};

// Its bytes may be anything afterwards, and are NaN before.
TEST_F(Guards, leave_scratch_to_the_operation) {
  int runs = 0;
  WithScratch backend([&](const Invocation& invocation) {
    for (int64_t i = 0; i < WithScratch::kBytes; ++i)
      EXPECT_EQ(invocation.workspace.as<uint8_t>()[i], 0xff);
    std::fill_n(invocation.workspace.as<uint8_t>(), WithScratch::kBytes, uint8_t{7});
    ++runs;
  });
  const OperationCase made = sum(false);
  EXPECT_TRUE(guarded_run(backend, made.program, made.inputs).violations.empty());
  EXPECT_EQ(runs, 2);
}

TEST_F(Guards, see_a_write_past_either_end_of_scratch) {
  for (const int64_t byte : {int64_t{-1}, WithScratch::kBytes}) {
    WithScratch backend(
        [&](const Invocation& invocation) { invocation.workspace.as<uint8_t>()[byte] = 0; });
    const OperationCase made = sum(false);
    const auto found = guarded_run(backend, made.program, made.inputs).violations;
    ASSERT_EQ(found.size(), 2U);  // by tune, by run
    EXPECT_NE(found[0].find(fmt::format("byte {} of tensor 'workspace", byte)), std::string::npos)
        << found[0];
  }
}

// What an operation fails to write stays NaN, and no comparison forgives that.
TEST_F(Guards, leave_unwritten_output_as_nan) {
  class Idle : public reference::ReferenceBackend {
   public:
    Idle() : ReferenceBackend({}) {}
    void run(const Invocation&) override {}
  };
  Idle backend;
  const OperationCase operation_case = sum(false);
  const RunResult result = guarded_run(backend, operation_case.program, operation_case.inputs);
  const auto output = operation_case.operation().writes[0];
  EXPECT_GT(relative_error(result.values.at(output), oracle_of(operation_case).values.at(output)),
            1.0);
}

TEST(RelativeError, is_of_the_whole_tensor) {
  EXPECT_EQ(relative_error({3, 4}, {3, 4}), 0);
  EXPECT_DOUBLE_EQ(relative_error({3, 4.5}, {3, 4}), 0.1);
  EXPECT_EQ(relative_error({0, 0}, {0, 0}), 0);
  EXPECT_GT(relative_error({0, 1e-30}, {0, 0}), 1);
  EXPECT_GT(relative_error({NAN, 1}, {1, 1}), 1);
  EXPECT_EQ(relative_error({NAN, 1}, {NAN, 1}), 0);
}

TEST(Rounded, is_what_a_tensor_holds) {
  EXPECT_EQ(rounded({1.0 + 0x1p-9}, DType::bf16), Values{1.0});
  EXPECT_EQ(rounded({1.0 + 0x1p-9}, DType::f32), Values{1.0 + 0x1p-9});
  EXPECT_EQ(rounded({-3}, DType::i32), Values{-3});
}

}  // namespace
}  // namespace snug::backends::test
