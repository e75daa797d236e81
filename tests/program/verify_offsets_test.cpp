// Layouts that are right, and one of each way to be wrong.
#include <gtest/gtest.h>

#include "program/text/text.h"
#include "program/verify/verify.h"
#include "random_program.h"

namespace snug::program {
namespace {

using Problems = std::vector<std::string>;

// A chain of 64-byte tensors: x is alive always, a in [0, 1], b in [1, 2], c in [2, 2].
constexpr const char* kChain =
    "program p\n"
    "tensor x (8, 4) bf16 batch step\n"
    "tensor w (4, 4) bf16 weight run\n"
    "a (8, 4) bf16 = matmul(x, w)\n"
    "b (8, 4) bf16 = matmul(a, w)\n"
    "c (8, 4) bf16 = add(b, x)\n";

Problems problems_of(const std::string& text, const std::vector<int64_t>& offsets) {
  return verify_offsets(parse_text(text), offsets);
}

TEST(VerifyOffsets, AcceptsReuseOfWhatIsDead) {
  EXPECT_EQ(problems_of(kChain, {0, 64, 96, 160, 96}), Problems{});
  EXPECT_EQ(problems_of(kChain, {1000, 64, 96, 0, 96}), Problems{});
}

TEST(VerifyOffsets, AcceptsAnOutputInPlaceOfADyingInput) {
  EXPECT_EQ(problems_of(kChain, {0, 64, 96, 160, 160}), Problems{});
}

// What is done in one go is not done in order: c may not take the bytes of a, which b reads.
TEST(VerifyOffsets, WhatIsJoinedTouchesLivesThroughout) {
  const std::string text =
      "program p\n"
      "tensor x (8, 4) bf16 batch step\n"
      "tensor w (4, 4) bf16 weight run\n"
      "a (8, 4) bf16 = add(x, x)\n"
      "b (8, 4) bf16 = matmul(a, w)\n"
      "c (8, 4) bf16 = silu_mul(b, x)";
  EXPECT_EQ(problems_of(text + "\n", {0, 64, 96, 160, 96}), Problems{});
  EXPECT_EQ(problems_of(text + " joined\n", {0, 64, 96, 160, 96}),
            Problems{"'a' at [96, 160) and 'c' at [96, 160) overlap in operation 1"});
}

TEST(VerifyOffsets, RefusesInPlaceWhereTheKindDoesNotWorkSo) {
  EXPECT_EQ(problems_of(kChain, {0, 64, 96, 96, 160}),
            Problems{"'a' at [96, 160) and 'b' at [96, 160) overlap in operation 1"});
}

TEST(VerifyOffsets, RefusesInPlaceThatIsShifted) {
  EXPECT_EQ(problems_of(kChain, {0, 64, 96, 160, 158}),
            Problems{"'c' at [158, 222) and 'b' at [160, 224) overlap in operation 2"});
}

TEST(VerifyOffsets, RefusesInPlaceOfAnInputThatLives) {
  const std::string text = std::string(kChain) + "d (8, 4) bf16 = add(b, c)\n";
  EXPECT_EQ(problems_of(text, {0, 64, 96, 160, 160, 300}),
            Problems{"'b' at [160, 224) and 'c' at [160, 224) overlap in operation 2"});
}

TEST(VerifyOffsets, RefusesTwoOutputsOverOneInput) {
  const std::string text =
      "program p\n"
      "tensor x (8, 4) bf16 batch step\n"
      "g (8, 4) bf16 = add(x, x)\n"
      "dg (8, 4) bf16, du (8, 4) bf16 = silu_mul_grad(x, g, g)\n";
  EXPECT_EQ(problems_of(text, {0, 64, 64, 128}), Problems{});
  EXPECT_EQ(problems_of(text, {0, 64, 64, 64}),
            Problems{"'dg' at [64, 128) and 'du' at [64, 128) overlap in operation 1"});
}

TEST(VerifyOffsets, RefusesOverlapByOneByte) {
  EXPECT_EQ(problems_of(kChain, {0, 63, 96, 160, 96}),
            Problems{"'x' at [0, 64) and 'w' at [63, 95) overlap in operation 0"});
}

// What lives for the run or the step is alive also where nothing touches it.
TEST(VerifyOffsets, RunTensorsAreAlwaysAlive) {
  const std::string text =
      "program p\n"
      "tensor w (4, 4) bf16 weight run\n"
      "tensor idle (4, 4) bf16 weight run\n"
      "c (4, 4) bf16 = add(w, w)\n";
  EXPECT_EQ(problems_of(text, {0, 32, 48}),
            Problems{"'idle' at [32, 64) and 'c' at [48, 80) overlap in operation 0"});
  EXPECT_EQ(
      problems_of("program p\ntensor a (4) u8 weight run\ntensor b (4) u8 weight run\n", {0, 3}),
      Problems{"'a' at [0, 4) and 'b' at [3, 7) overlap in operation 0"});
}

// Slots of a load ring are filled by the host.
TEST(VerifyOffsets, UntouchedTensorsAreAlwaysAlive) {
  const std::string text = std::string(kChain) + "tensor slot (10) u8 staging\n";
  EXPECT_EQ(problems_of(text, {0, 64, 96, 160, 160, 224}), Problems{});
  EXPECT_EQ(problems_of(text, {0, 64, 96, 160, 160, 150}),
            Problems{"'a' at [96, 160) and 'slot' at [150, 160) overlap in operation 0"});
}

TEST(VerifyOffsets, SpacesAreApart) {
  const std::string text =
      "program p\n"
      "tensor a (4) u8 weight run\n"
      "tensor b (4) u8 weight host run\n";
  EXPECT_EQ(problems_of(text, {0, 0}), Problems{});
}

TEST(VerifyOffsets, UsesOfViewsKeepTheirBaseAlive) {
  const std::string text =
      "program p\n"
      "tensor x (8, 4) bf16 batch step\n"
      "tensor half (4, 4) bf16 view of a at 0\n"
      "a (8, 4) bf16 = add(x, x)\n"
      "b (8, 4) bf16 = add(x, x)\n"
      "c (4, 4) f32 = cast(half)\n";
  EXPECT_EQ(problems_of(text, {0, -1, 64, 128, 192}), Problems{});
  EXPECT_EQ(problems_of(text, {0, -1, 64, 64, 192}),
            Problems{"'a' at [64, 128) and 'b' at [64, 128) overlap in operation 1"});
}

TEST(VerifyOffsets, WorkspacesAreAliveInTheirOperations) {
  const std::string text =
      "program p\n"
      "tensor x (8, 4) bf16 batch step\n"
      "tensor s (100) u8 workspace\n"
      "a (8, 4) bf16 = add(x, x)\n"
      "b (8, 4) bf16 = add(a, x) workspace s\n"
      "c (8, 4) bf16 = add(b, x)\n";
  EXPECT_EQ(problems_of(text, {0, 200, 64, 128, 200}), Problems{});
  EXPECT_EQ(problems_of(text, {0, 150, 64, 128, 0 + 300}),
            Problems{"'b' at [128, 192) and 's' at [150, 250) overlap in operation 1"});
}

TEST(VerifyOffsets, PlacesEverythingThatIsUsed) {
  EXPECT_EQ(problems_of(kChain, {0, 64, -1, 160, 96}), Problems{"'a' was not placed"});
  EXPECT_EQ(problems_of(kChain, {0, 64, -7, 160, 96}), Problems{"'a' is placed at -7"});
  EXPECT_EQ(problems_of(kChain, {0}), Problems{"1 offsets for 5 tensors"});
}

// One after the other is always right; half of everything at one place is always wrong.
TEST(VerifyOffsets, OfALargeProgram) {
  const Program program = parse_text(to_text(layered_program(300)));
  std::vector<int64_t> offsets;
  int64_t top = 0;
  for (const Tensor& tensor : program.tensors) {
    offsets.push_back(tensor.is_view() ? -1 : top);
    top += tensor.is_view() ? 0 : tensor.bytes();
  }
  EXPECT_EQ(verify_offsets(program, offsets), Problems{});
  offsets[offsets.size() / 2] = offsets[1];
  EXPECT_FALSE(verify_offsets(program, offsets).empty());
}

}  // namespace
}  // namespace snug::program
