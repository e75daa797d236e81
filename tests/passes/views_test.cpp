// Passes over programs that cut one tensor into views: fused projections, heads of a row.
#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "base/error.h"
#include "passes/gradient/differentiate.h"
#include "passes/gradient/recompute.h"
#include "passes/lowering/lower.h"
#include "passes/uses.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Program;
using program::Tensor;
using program::TensorId;
using testing::dies;

// One product for gate and up, whose halves are read; then the head's loss.
constexpr std::string_view kForward = R"(program forward
tensor x (8, 4) f32 batch step
tensor w (12, 4) f32 weight run
tensor down (4, 6) f32 weight run
tensor head (6, 4) f32 weight run
tensor targets (8) i32 batch step
tensor inverse_tokens (1) f32 scalar step
tensor losses (8) f32 scalar step
tensor loss (1) f32 scalar step
tensor gate (8, 6) f32 view of both at 0 strides (12, 1)
tensor up (8, 6) f32 view of both at 6 strides (12, 1)
both (8, 12) f32 = matmul(x, w) {transpose_b}
gated (8, 6) f32 = silu_mul(gate, up)
y (8, 4) f32 = matmul(gated, down) {transpose_b}
losses, loss = linear_cross_entropy(y, head, targets, inverse_tokens)
)";

Program differentiated() {
  const Program forward = parse(kForward);
  const TensorId trainable[]{forward.find("w")};
  const Program result = differentiate(forward, trainable, {});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  return result;
}

const Tensor& tensor(const Program& program, const char* name) {
  const TensorId id = program.find(name);
  SNUG_CHECK(id != program::kNone, "no tensor {}", name);
  return program.tensor(id);
}

TEST(Views, AGradientIsCutAsItsTensorIs) {
  const Program result = differentiated();
  const TensorId whole = result.find("d.both");
  ASSERT_NE(whole, program::kNone);
  EXPECT_FALSE(result.tensor(whole).is_view());
  for (const char* part : {"gate", "up"}) {
    const Tensor& gradient = tensor(result, ("d." + std::string(part)).c_str());
    EXPECT_EQ(gradient.view.base, whole);
    EXPECT_EQ(gradient.view.offset, tensor(result, part).view.offset);
    EXPECT_EQ(gradient.view.strides, tensor(result, part).view.strides);
  }
  EXPECT_NE(print(result).find("gradient.w (12, 4) f32 gradient step = matmul(a=d.both, b=x)"),
            std::string::npos)
      << print(result);
}

TEST(Views, APartThatNothingReadsHasAGradientOfZeros) {
  std::string text(kForward);
  text.replace(text.find("silu_mul(gate, up)"), 18, "silu_mul(gate, gate)");
  const Program forward = parse(text);
  const TensorId trainable[]{forward.find("w")};
  const Program result = differentiate(forward, trainable, {});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  EXPECT_EQ(tensor(result, "d.up").view.base, result.find("d.both"));
  EXPECT_NE(print(result).find("d.up"), std::string::npos);
  // Of nothing, so that it is none whatever stands in what it is the gradient of.
  EXPECT_NE(print(result).find("at 6 strides (12, 1) = zeros()"), std::string::npos)
      << print(result);
}

TEST(Views, ASecondReadersShareIsAdded) {
  std::string text(kForward);
  text.replace(text.find("y (8, 4)"), 0,
               "more (8, 6) f32 = silu_mul(gate, up)\nsum (8, 6) f32 = add(gated, more)\n");
  text.replace(text.find("matmul(gated, down)"), 19, "matmul(sum, down)");
  const Program forward = parse(text);
  const TensorId trainable[]{forward.find("w")};
  const Program result = differentiate(forward, trainable, {});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  EXPECT_NE(print(result).find("accumulate(x=d.gate.2) updates (y=d.gate)"), std::string::npos)
      << print(result);
}

TEST(Views, RecomputingAPartRecomputesTheWhole) {
  const Program result = recompute(differentiated(), RecomputeMode::gate_up);
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const TensorId again = result.find("both.again");
  ASSERT_NE(again, program::kNone);
  for (const char* part : {"gate.again", "up.again"})
    EXPECT_EQ(tensor(result, part).view.base, again);
  EXPECT_NE(print(result).find("both.again (8, 12) f32 = matmul(a=x, b=w)"), std::string::npos)
      << print(result);
}

// silu_mul_grad writes d.gate over gate and d.up over up: d.both lies where both lay.
TEST(Views, PartsThatDieArePassedOnAsAWhole) {
  const Program result = share_in_place(differentiated());
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const TensorId both = result.find("both");
  for (const char* name : {"d.both", "d.gate", "d.up"})
    EXPECT_EQ(tensor(result, name).view.base, both) << name;
}

TEST(Views, NotWhereTheWholeIsReadLater) {
  const Program result = share_in_place(parse(R"(program p
tensor x (8, 4) f32 batch step
tensor dy (8, 6) f32 batch step
tensor w (12, 4) f32 weight run
tensor gate (8, 6) f32 view of both at 0 strides (12, 1)
tensor up (8, 6) f32 view of both at 6 strides (12, 1)
tensor d.gate (8, 6) f32 view of d.both at 0 strides (12, 1)
tensor d.up (8, 6) f32 view of d.both at 6 strides (12, 1)
both (8, 12) f32 = matmul(x, w) {transpose_b}
tensor d.both (8, 12) f32
d.gate, d.up = silu_mul_grad(dy, gate, up)
sum (8, 12) f32 = add(both, d.both)
)"));
  EXPECT_FALSE(tensor(result, "d.both").is_view());
}

// What is a view of an output follows it to the input whose place it takes.
TEST(Views, OfAnOutputFollowIt) {
  const Program result = share_in_place(parse(R"(program p
tensor x (8, 4) f32 batch step
tensor w (12, 4) f32 weight run
tensor table (8, 4) f32 batch step
tensor q (8, 4) f32 view of turned at 0 strides (12, 1)
tensor v (8, 4) f32 view of turned at 8 strides (12, 1)
qkv (8, 12) f32 = matmul(x, w) {transpose_b}
turned (8, 12) f32 = rope(qkv, table) {head_dim 4, rotated_heads 2}
sum (8, 4) f32 = add(q, v)
)"));
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const TensorId qkv = result.find("qkv");
  for (const char* name : {"turned", "q", "v"})
    EXPECT_EQ(tensor(result, name).view.base, qkv) << name;
  EXPECT_EQ(tensor(result, "v").view.offset, 8);
}

// A norm of heads is never kept, nor is the rotation of it: both are made again of what went in.
TEST(Views, HeadsAreNormedAndRotatedAgain) {
  const Program forward = parse(R"(program forward
tensor x (8, 4) f32 batch step
tensor w (4, 4) f32 weight run
tensor norm (2) f32 weight run
tensor table (8, 2) f32 batch step
tensor head (6, 4) f32 weight run
tensor targets (8) i32 batch step
tensor inverse_tokens (1) f32 scalar step
tensor losses (8) f32 scalar step
tensor loss (1) f32 scalar step
tensor bounds (1, 2) i32 batch step
tensor q.heads (16, 2) f32 view of q at 0
tensor n.rows (8, 4) f32 view of n at 0
q (8, 4) f32 = matmul(x, w) {transpose_b}
n (16, 2) f32 = rms_norm(q.heads, norm)
r (8, 4) f32 = rope(n.rows, table) {head_dim 2}
o (8, 4) f32, lse (2, 8) f32 = attention(r, r, r, bounds, bounds) {heads 2, kv_heads 2, head_dim 2}
losses, loss = linear_cross_entropy(o, head, targets, inverse_tokens)
)");
  const TensorId trainable[]{forward.find("w"), forward.find("norm")};
  const Program backward = differentiate(forward, trainable, {});
  EXPECT_EQ(program::verify(backward), std::vector<std::string>{});
  const Program none = recompute(backward, RecomputeMode::none);
  EXPECT_EQ(program::verify(none), std::vector<std::string>{});
  EXPECT_NE(none.find("r.again"), program::kNone);
  EXPECT_EQ(none.find("q.again"), program::kNone);
  const Program attention = recompute(backward, RecomputeMode::attention);
  EXPECT_EQ(program::verify(attention), std::vector<std::string>{});
  EXPECT_NE(attention.find("q.again"), program::kNone);
}

TEST(Views, UsesAreCountedAtTheOwner) {
  const Program forward = parse(kForward);
  const Uses uses = find_uses(forward);
  const auto both = static_cast<size_t>(forward.find("both"));
  EXPECT_EQ(uses.readers[both], (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(uses.writers[both], std::vector<int32_t>{0});
}

}  // namespace
}  // namespace snug::passes
