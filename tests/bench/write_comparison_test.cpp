// What one backend wrote against what another wrote: which pairs are compared, and what differs.
#include "bench/write_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "program/text/text.h"

namespace snug::bench {
namespace {

using base::DType;
using program::Program;

constexpr const char* kText = R"(program update
tensor x (4) f32 weight run
y (4) f32 = add(x, x)
z (4) f32 = add(y, x)
)";

Written four(double a, double b, double c, double d, DType type = DType::f32) {
  return {type, {4}, {a, b, c, d}};
}

// Of two programs, of which the second wrote this to y and z.
class Comparing {
 public:
  explicit Comparing(const std::string& other = kText)
      : a_(program::parse_text(kText, "a")), b_(program::parse_text(other, "b")) {
    comparison_.expect(a_, b_);
  }
  void kept(const std::string& tensor, Written written) {
    comparison_.keep("update", tensor, std::move(written));
  }
  void compare(size_t operation, const std::string& tensor, const Written& written) {
    comparison_.compare(a_, operation, tensor, written);
  }
  const WriteComparison& result() const { return comparison_; }

 private:
  Program a_;
  Program b_;
  WriteComparison comparison_;
};

TEST(WriteComparison, EqualWritesDoNotDiffer) {
  Comparing both;
  both.kept("y", four(2, 4, 6, 8));
  both.kept("z", four(0, 0, 0, 0));
  both.compare(0, "y", four(2, 4, 6, 8.0001));
  both.compare(1, "z", four(0, 0, 0, 0));
  EXPECT_FALSE(both.result().first());
  EXPECT_EQ(both.result().compared(), 2);
  EXPECT_EQ(both.result().zeros(), 1);
  EXPECT_EQ(both.result().only_a() + both.result().only_b(), 0);
  EXPECT_LT(both.result().largest_by_kind().at("add").relative, 1e-4);
}

TEST(WriteComparison, TheFirstThatDiffersIsNamed) {
  Comparing both;
  both.kept("y", four(2, 4, 6, 8));
  both.kept("z", four(3, 6, 9, 12));
  both.compare(0, "y", four(2, 4, 6.1, 8));
  both.compare(1, "z", four(3, 6, 90, 12));
  ASSERT_TRUE(both.result().first());
  const WriteDifference& first = *both.result().first();
  EXPECT_EQ(first.tensor, "y");
  EXPECT_EQ(first.operation, 0U);
  EXPECT_EQ(first.kind, "add");
  EXPECT_EQ(first.element, 2);
  EXPECT_EQ(first.value_a, 6.1);
  EXPECT_EQ(first.value_b, 6);
  EXPECT_NEAR(first.relative, 0.1 / std::sqrt(120.0), 1e-9);
  EXPECT_EQ(both.result().largest_by_kind().at("add").tensor, "z");
}

TEST(WriteComparison, WhatIsNoNumberDiffers) {
  const double no_number = std::numeric_limits<double>::quiet_NaN();
  for (const bool in_a : {true, false}) {
    Comparing both;
    both.kept("y", four(2, 4, in_a ? 6 : no_number, 8));
    both.compare(0, "y", four(2, 4, in_a ? no_number : 6, 9));
    ASSERT_TRUE(both.result().first()) << in_a;
    EXPECT_EQ(both.result().first()->element, 2) << in_a;
  }
}

TEST(WriteComparison, ValuesIn16BitsHaveRoomForTheirRounding) {
  Comparing both;
  both.kept("y", four(2, 4, 6, 8, DType::bf16));
  both.kept("z", four(3, 6, 9, 12));
  both.compare(0, "y", four(2, 4, 6, 8.1));
  both.compare(1, "z", four(3, 6, 9, 12.1));
  EXPECT_FALSE(both.result().first());
}

TEST(WriteComparison, IntegersDifferWhereOneDoes) {
  Comparing both;
  both.kept("y", four(200000, 300000, 400000, 1, DType::i32));
  both.compare(0, "y", four(200000, 300000, 400000, 2, DType::i32));
  EXPECT_TRUE(both.result().first());
}

// Another shape, other writes of one tensor and tensors that one alone has are no pairs.
TEST(WriteComparison, OnlyCommonWritesAreCompared) {
  Comparing both(R"(program update
tensor x (4) f32 weight run
tensor c (2, 4) f32 weight run
z (4) f32 = add(x, x)
w (4) f32 = add(z, x)
y (2, 4) f32 = add(c, c)
)");
  both.kept("z", four(2, 4, 6, 8));
  both.kept("w", four(3, 6, 9, 12));
  both.kept("y", {DType::f32, {2, 4}, std::vector<double>(8, 1.0)});
  both.compare(0, "y", four(9, 9, 9, 9));
  both.compare(1, "z", four(2, 4, 6, 8));
  EXPECT_FALSE(both.result().first());
  EXPECT_EQ(both.result().compared(), 1);
  EXPECT_EQ(both.result().only_a(), 1);
  EXPECT_EQ(both.result().only_b(), 2);
}

}  // namespace
}  // namespace snug::bench
