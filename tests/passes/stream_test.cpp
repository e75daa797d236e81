// The pass that keeps weights and optimizer state in host memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "../program/moved_awaits.h"
#include "passes/memory/layout.h"
#include "passes/memory/stream.h"
#include "program/verify/verify.h"
#include "test_target.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Operation;
using program::Program;
using program::Space;

class RemoteTarget final : public TestTarget {
 public:
  RemoteTarget() : TestTarget([](const program::OperationView&) { return true; }) {}
  bool host_reaches_device() const override { return false; }
};

TestTarget near_target() {
  return TestTarget([](const program::OperationView&) { return true; });
}

// Two layers of one linear each, forward and back. Weights and gradients take 64 bytes.
constexpr std::string_view kMicro = R"(program micro
tensor a (8, 4) f32 batch step
tensor w (4, 4) f32 weight run layer 0
tensor v (4, 4) f32 weight run layer 1
x (8, 4) f32 = matmul(a, w) layer 0
y (8, 4) f32 = matmul(x, v) layer 1
h (4, 4) f32 gradient step layer 1 = matmul(x, y) {transpose_a} backward layer 1
dx (8, 4) f32 = matmul(y, v) {transpose_b} backward layer 1
g (4, 4) f32 gradient step layer 0 = matmul(a, dx) {transpose_a} backward layer 0
)";

StreamOptions everything(int64_t window) {
  return {.params = true, .optimizer = true, .threshold_bytes = 64, .window_bytes = window};
}

constexpr std::string_view kNear = R"(program micro
tensor a (8, 4) f32 batch step
tensor w (4, 4) f32 weight pinned_host run layer 0
tensor v (4, 4) f32 weight pinned_host run layer 1
w.streamed.8 (4, 4) f32 weight = transfer(x=w) layer 0
await(x=w) updates (y=w.streamed.8) layer 0
x (8, 4) f32 = matmul(a=a, b=w.streamed.8) layer 0
v.streamed.9 (4, 4) f32 weight = transfer(x=v) layer 1
await(x=v) updates (y=v.streamed.9) layer 1
y (8, 4) f32 = matmul(a=x, b=v.streamed.9) layer 1
h.streamed.10 (4, 4) f32 gradient = matmul(a=x, b=y) {transpose_a} backward layer 1
h (4, 4) f32 gradient pinned_host step = transfer(x=h.streamed.10) backward layer 1
await(x=h.streamed.10) updates (y=h) backward layer 1
v.streamed.11 (4, 4) f32 weight = transfer(x=v) backward layer 1
await(x=v) updates (y=v.streamed.11) backward layer 1
dx (8, 4) f32 = matmul(a=y, b=v.streamed.11) {transpose_b} backward layer 1
g.streamed.12 (4, 4) f32 gradient = matmul(a=a, b=dx) {transpose_a} backward layer 0
g (4, 4) f32 gradient pinned_host step = transfer(x=g.streamed.12) backward layer 0
await(x=g.streamed.12) updates (y=g) backward layer 0
)";

// Both weights' copies have room next to each other, and the gradients' next to them.
constexpr std::string_view kRemote = R"(program micro
tensor a (8, 4) f32 batch step
tensor w (4, 4) f32 weight pinned_host run layer 0
tensor v (4, 4) f32 weight pinned_host run layer 1
w.streamed.8 (4, 4) f32 weight = transfer(x=w) channel host_to_device layer 0
await(x=w) updates (y=w.streamed.8) layer 0
v.streamed.9 (4, 4) f32 weight layer 1 = transfer(x=v) channel host_to_device layer 0
x (8, 4) f32 = matmul(a=a, b=w.streamed.8) layer 0
await(x=v) updates (y=v.streamed.9) layer 1
y (8, 4) f32 = matmul(a=x, b=v.streamed.9) layer 1
h.streamed.10 (4, 4) f32 gradient = matmul(a=x, b=y) {transpose_a} backward layer 1
h (4, 4) f32 gradient pinned_host step = transfer(x=h.streamed.10) backward channel device_to_host layer 1
dx (8, 4) f32 = matmul(a=y, b=v.streamed.9) {transpose_b} backward layer 1
g.streamed.11 (4, 4) f32 gradient = matmul(a=a, b=dx) {transpose_a} backward layer 0
g (4, 4) f32 gradient pinned_host step = transfer(x=g.streamed.11) backward channel device_to_host layer 0
await(x=h.streamed.10) updates (y=h) backward layer 1
await(x=g.streamed.11) updates (y=g) backward layer 0
)";

constexpr std::string_view kUpdate = R"(program update
tensor w (4, 4) f32 weight run layer 0
tensor g (4, 4) f32 gradient step layer 0
tensor m (4, 4) f32 moment run layer 0
tensor u (4, 4) f32 moment run layer 0
tensor rate (1) f32 batch step
tensor step (1) i32 batch step
norm (1) f32 scalar step = global_norm(g) update
factor (1) f32 scalar step = clip_factor(norm) update
adamw(g, factor, rate, step) updates (w, m, u) update layer 0
)";

int64_t count(const Program& program, program::Kind kind) {
  return std::ranges::count(program.operations, kind, &Operation::kind);
}

void expect_verified(const Program& program) {
  EXPECT_EQ(program::verify(program), std::vector<std::string>{});
}

TEST(Stream, CopiesAreMadeWhenTheyAreNeeded) {
  const Program result = stream(parse(kMicro), everything(0), near_target());
  expect_verified(result);
  EXPECT_EQ(print(result), print(parse(kNear)));
}

TEST(Stream, CopiesBeginAsFarAheadAsTheWindowHasRoom) {
  const Program result = stream(parse(kMicro), everything(1000), RemoteTarget());
  expect_verified(result);
  EXPECT_EQ(print(result), print(parse(kRemote)));
}

TEST(Stream, CopiesOnTheDeviceStayWithinTheWindow) {
  const auto arena = [](int64_t window) {
    const Program result = stream(parse(kMicro), everything(window), RemoteTarget());
    expect_verified(result);
    return layout(std::span(&result, 1), 64).spaces[static_cast<size_t>(Space::device)].arena_bytes;
  };
  const int64_t alone = arena(0);
  for (const int64_t window : {64, 128, 192, 256, 320}) {
    EXPECT_LE(arena(window), alone + std::max<int64_t>(0, window - 64)) << window;
    EXPECT_GE(arena(window), alone) << window;
  }
  EXPECT_GT(arena(192), alone);
}

// A tensor that is changed is fetched again only after it went back.
TEST(Stream, WhatWasChangedGoesBackBeforeItIsFetched) {
  constexpr std::string_view kTwice = R"(program micro
tensor a (8, 4) f32 batch step
tensor g (4, 4) f32 gradient step layer 0
matmul(a, a) updates (g) {transpose_a, accumulate} backward layer 1
x (8, 4) f32 = add(a, a) backward layer 0
matmul(x, a) updates (g) {transpose_a, accumulate} backward layer 2
)";
  const Program result = stream(parse(kTwice), everything(100000), RemoteTarget());
  expect_verified(result);
  EXPECT_EQ(count(result, program::Kind::transfer), 4);
}

TEST(Stream, AnUpdateOnTheDeviceBringsItsStateAndTheNormReadsWhereItLies) {
  const Program result = stream(parse(kUpdate), everything(0), RemoteTarget());
  expect_verified(result);
  // Gradient, weight and two moments there, all but the gradient back.
  EXPECT_EQ(count(result, program::Kind::transfer), 7);
  const Operation& norm = result.operations.front();
  EXPECT_EQ(norm.kind(), program::Kind::global_norm);
  EXPECT_EQ(result.tensor(norm.reads[0]).space, Space::pinned_host);
}

TEST(Stream, AnUpdateOnTheHostCopiesNothing) {
  StreamOptions options = everything(0);
  options.update_on_host = true;
  const Program result = stream(parse(kUpdate), options, near_target());
  expect_verified(result);
  EXPECT_EQ(count(result, program::Kind::transfer), 0);
  for (const Operation& operation : result.operations)
    EXPECT_EQ(operation.on_host, operation.kind() != program::Kind::clip_factor);
  for (const char* name : {"w", "g", "m", "u"})
    EXPECT_EQ(result.tensor(result.find(name)).space, Space::pinned_host) << name;
}

// Next to a device with memory of its own: what the host needs is copied there, on channels of
// their own, and the host alone waits for it.
TEST(Stream, AnUpdateOnTheHostOfADeviceRunsNextToIt) {
  StreamOptions options = everything(0);
  options.update_on_host = true;
  const Program result = stream(parse(kUpdate), options, RemoteTarget());
  expect_verified(result);
  // The factor, the rate and the step.
  EXPECT_EQ(count(result, program::Kind::transfer), 3);
  const auto adamw = std::ranges::find(result.operations, program::Kind::adamw, &Operation::kind);
  ASSERT_NE(adamw, result.operations.end());
  EXPECT_TRUE(adamw->on_host);
  EXPECT_EQ(adamw->channel, program::Channel::host);
  const auto waits_there = [](const Operation& operation) {
    return operation.kind() == program::Kind::await && operation.channel == program::Channel::host;
  };
  EXPECT_EQ(std::ranges::count_if(result.operations, waits_there), 3);
}

TEST(Stream, TheVerifierSeesEachAwaitThatIsNotInItsPlace) {
  StreamOptions options = everything(200);
  for (const bool on_host : {false, true})
    for (const std::string_view text : {kMicro, kUpdate}) {
      options.update_on_host = on_host;
      const Program whole = stream(parse(text), options, RemoteTarget());
      expect_verified(whole);
      EXPECT_GT(testing::expect_awaits_in_place(whole), 0);
    }
}

TEST(Stream, SmallTensorsStayOnTheDevice) {
  StreamOptions options = everything(0);
  options.threshold_bytes = 65;
  EXPECT_EQ(stream(parse(kMicro), options, RemoteTarget()), parse(kMicro));
}

}  // namespace
}  // namespace snug::passes
