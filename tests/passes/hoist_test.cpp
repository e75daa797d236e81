// hoist, text in and text out.
#include "passes/memory/hoist.h"

#include <gtest/gtest.h>

#include "text_in_text_out.h"

namespace snug::passes {
namespace {

// Norms of z are not those of a weight: each run makes them.
constexpr std::string_view kDecode = R"(program decode
tensor x (8, 6) bf16 activation step
tensor w (4, 6) bf16 weight run layer 0
tensor a (2, 6) bf16 adapter run layer 0
tensor b (4, 2) bf16 adapter run layer 0
tensor m (4) f32 adapter run layer 0
n (4) f32 scalar = row_norms(w, a, b) {low_rank, alpha 2} layer 0
y (8, 4) bf16 = matmul(x, w) {transpose_b} layer 0
z (8, 4) bf16 = scale_columns(y, m, n) {divided} layer 0
o (8) f32 = row_norms(z) layer 0
)";

TEST(Hoist, MakesNormsOfWeightsOnce) {
  const Hoisted hoisted = hoist(parse(kDecode));
  EXPECT_EQ(program::verify(hoisted.program), std::vector<std::string>{});
  EXPECT_EQ(program::verify(hoisted.once), std::vector<std::string>{});
  const std::string left = print(hoisted.program);
  EXPECT_NE(left.find("tensor n (4) f32 scalar run"), std::string::npos) << left;
  EXPECT_EQ(left.find("row_norms(w=w"), std::string::npos) << left;
  EXPECT_NE(left.find("row_norms(w=z)"), std::string::npos) << left;
  const std::string once = print(hoisted.once);
  EXPECT_EQ(hoisted.once.name, "prepare");
  EXPECT_EQ(hoisted.once.operations.size(), 1U);
  EXPECT_NE(once.find("n = row_norms(w=w, a=a, b=b) {low_rank, alpha 2} layer 0"),
            std::string::npos)
      << once;
}

TEST(Hoist, LeavesAProgramWithoutThemAsItIs) {
  constexpr std::string_view kPlain = R"(program decode
tensor x (8, 6) bf16 activation step
tensor w (4, 6) bf16 weight run layer 0
y (8, 4) bf16 = matmul(x, w) {transpose_b} layer 0
)";
  const Hoisted hoisted = hoist(parse(kPlain));
  EXPECT_EQ(print(hoisted.program), print(parse(kPlain)));
  EXPECT_TRUE(hoisted.once.operations.empty());
}

}  // namespace
}  // namespace snug::passes
