// Orders of a layer's backward operations, by what is alive then.
#include "passes/memory/schedule.h"

#include <gtest/gtest.h>

#include "passes/lowering/lower.h"
#include "passes/memory/layout.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Program;

TEST(Schedule, WhatIsLargeDiesEarly) {
  const Program before = parse(R"(program p
tensor dy (8, 4) f32 batch step
tensor x (8, 64) f32 batch step
tensor w (4, 64) f32 weight run
tensor norm (64) f32 weight run
tensor g (4, 64) f32 gradient step
n (8, 64) f32 = rms_norm(x, norm) recompute
dx (8, 64) f32 = matmul(dy, w) backward
g = matmul(dy, n) {transpose_a} backward
dz (8, 4) f32 = matmul(dx, w) {transpose_b} backward
)");
  const Program after = schedule(before);
  ASSERT_EQ(after.operations.size(), before.operations.size());
  // The gradient, which frees n, comes before dx, which needs as much again.
  EXPECT_EQ(after.operations[1].writes, before.operations[2].writes);
  EXPECT_EQ(after.operations[2].writes, before.operations[1].writes);
}

// The backward pass of an MLP whose gate and up are made again, with an adapter on its last linear
// layer. `h` is needed for the adapter's gradient alone, so that it can be gone before `dh` is
// made.
constexpr std::string_view kMlp = R"(program p
tensor dy (8, 4) f32 batch step
tensor x (8, 4) f32 batch step
tensor gate.w (64, 4) f32 weight run
tensor up.w (64, 4) f32 weight run
tensor down.w (4, 64) f32 weight run
tensor b (4, 1) f32 weight run
tensor g (1, 64) f32 gradient step
tensor dx (8, 4) f32 activation step
gate (8, 64) f32 = matmul(x, gate.w) {transpose_b} recompute
up (8, 64) f32 = matmul(x, up.w) {transpose_b} recompute
dh (8, 64) f32 = matmul(dy, down.w) backward
h (8, 64) f32 = silu_mul(gate, up) recompute
da (8, 1) f32 = matmul(dy, b) backward
g = matmul(da, h) {transpose_a} backward
dgate (8, 64) f32, dup (8, 64) f32 = silu_mul_grad(dh, gate, up) backward
dx.up (8, 4) f32 = matmul(dup, up.w) backward
dx.gate (8, 4) f32 = matmul(dgate, gate.w) backward
dx = add(dx.up, dx.gate) backward
)";

int64_t live_bytes(const Program& program) {
  const Program shared = share_in_place(program);
  return layout(std::span(&shared, 1), 64).spaces[0].live_bytes[0];
}

TEST(Schedule, WhatAnAdapterNeedsIsGoneBeforeWhatFollows) {
  const Program before = parse(kMlp);
  const int64_t width_bytes = 8 * 64 * 4;
  EXPECT_GT(live_bytes(before), 4 * width_bytes);
  const Program after = schedule(before);
  EXPECT_EQ(program::verify(after), std::vector<std::string>{});
  EXPECT_LT(live_bytes(after), 3 * width_bytes + width_bytes / 2);
}

TEST(Schedule, TheGivenOrderStaysWhereNoneIsBetter) {
  const Program program = parse(R"(program p
tensor dy (8, 4) f32 batch step
tensor a (4, 4) f32 weight run
tensor b (4, 4) f32 weight run
tensor d (8, 4) f32 activation step
db (8, 4) f32 = matmul(dy, b) backward
da (8, 4) f32 = matmul(dy, a) backward
d = add(da, db) backward
)");
  EXPECT_EQ(print(schedule(program)), print(program));
}

// Though the second one would free what it reads: its product will add to the first one's.
TEST(Schedule, AddendsAreMadeInTheGivenOrder) {
  const Program program = parse(R"(program p
tensor dy (8, 4) f32 batch step
tensor x (8, 4) f32 batch step
tensor u (4, 64) f32 weight run
tensor v (4, 32) f32 weight run
tensor w (32, 64) f32 weight run
tensor d (8, 64) f32 activation step
g (8, 32) f32 = matmul(x, v) recompute
a (8, 64) f32 = matmul(dy, u) backward
b (8, 64) f32 = matmul(g, w) backward
d = add(a, b) backward
)");
  const std::string text = print(schedule(program));
  EXPECT_LT(text.find("a (8, 64)"), text.find("b (8, 64)")) << text;
}

}  // namespace
}  // namespace snug::passes
