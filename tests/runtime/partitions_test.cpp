// How a program is divided into what a device may repeat by itself and what the host queues in
// every run.
#include "runtime/execution/partitions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "program/kinds/loss/cross_entropy.h"
#include "program/text/text.h"

namespace snug::runtime {
namespace {

// As a device does that reads the bounds of attention itself.
bool takes_extent(const program::OperationView& view) {
  return view.operation.attributes.is<program::LinearCrossEntropy>();
}

// "R0-3 Q3-4": recordable operations [0, 3), then [3, 4) queued again.
std::string partitions_in(const std::string& lines) {
  const program::Program program = program::parse_text(
      "program p\n"
      "tensor host.a (8, 4) f32 batch pinned_host step\n"
      "tensor a (8, 4) f32 batch step\n"
      "tensor w (16, 4) f32 weight run\n"
      "tensor targets (8) i32 batch step\n"
      "tensor inverse (1) f32 batch step\n"
      "tensor bounds (2, 2) i32 batch step\n" +
          lines,
      "test");
  std::string text;
  for (const Partition& partition : partitions_of(program, takes_extent))
    text += fmt::format("{}{}{}-{}", text.empty() ? "" : " ", partition.is_recordable ? "R" : "Q",
                        partition.begin, partition.end);
  return text;
}

constexpr const char* kCopy = "a = copy(host.a)\n";
constexpr const char* kX = "x (8, 4) f32 = add(a, a)\n";
constexpr const char* kOut = "x.out (8, 4) f32 pinned_host = transfer(x)\n";
constexpr const char* kAwaitOut = "await(x) updates (x.out)\n";
constexpr const char* kLoss =
    "losses (8) f32, loss (1) f32 = linear_cross_entropy(x, w, targets, inverse) {algorithm "
    "chunk_rows 4}\n";
constexpr const char* kY = "y (8, 4) f32 = add(x, a)\n";

TEST(Partitions, WhatTheHostGivesIsQueuedAnew) {
  EXPECT_EQ(partitions_in(std::string(kCopy) + kX + kY), "Q0-1 R1-3");
}

TEST(Partitions, SoIsALoss) {
  EXPECT_EQ(partitions_in(std::string(kX) + kY + kLoss + "z (8, 4) f32 = add(x, y)\n"),
            "R0-2 Q2-3 R3-4");
}

// In a recording the device would wait for it at the recording's end.
TEST(Partitions, TheHostsWorkIsQueuedAnewWithItsAwaits) {
  const std::string work =
      "await(x) updates (x.out) channel host\n"
      "z (8, 4) f32 pinned_host = add(x.out, x.out) channel host on_host\n";
  EXPECT_EQ(partitions_in(std::string(kX) + kOut + kLoss + work + kAwaitOut + kY),
            "R0-1 Q1-6 R6-7");
  EXPECT_EQ(
      partitions_in(std::string(kX) + kY + kOut + work + kAwaitOut + "u (8, 4) f32 = add(x, y)\n"),
      "R0-2 Q2-6 R6-7");
  // Its await ends before the host works.
  EXPECT_EQ(
      partitions_in(std::string(kX) + kOut + "await(x) updates (x.out) channel host\n" + kAwaitOut +
                    kY + "z (8, 4) f32 pinned_host = add(x.out, x.out) channel host on_host\n"),
      "R0-1 Q1-4 R4-5 Q5-6");
}

TEST(Partitions, WhatFindsItsExtentOnTheDeviceIsRecorded) {
  const std::string attention =
      "o (8, 4) f32, lse (1, 8) f32 = attention(x, x, x, bounds, bounds) {heads 1, kv_heads 1, "
      "head_dim 4}\n";
  EXPECT_EQ(partitions_in(kX + attention + kLoss), "R0-2 Q2-3");
}

TEST(Partitions, ACopyThatEndsWhereItBeganIsRecorded) {
  EXPECT_EQ(partitions_in(std::string(kX) + kOut + kY + kAwaitOut + kLoss), "R0-4 Q4-5");
}

TEST(Partitions, ACopyAcrossALossIsQueuedAnewAtBothEnds) {
  EXPECT_EQ(partitions_in(std::string(kX) + kOut + kY + kLoss + "z (8, 4) f32 = add(x, y)\n" +
                          kAwaitOut + "u (8, 4) f32 = add(z, z)\n"),
            "R0-1 Q1-2 R2-3 Q3-4 R4-5 Q5-6 R6-7");
}

// Ranks begin what they do together in one order, from the host, and what they wait for is theirs.
TEST(Partitions, WhatRanksDoTogetherIsQueuedAnewAtBothEnds) {
  EXPECT_EQ(partitions_in(std::string(kX) + "g (16, 4) f32 = all_gather(x) {ranks 2}\n" + kY +
                          "await(x) updates (g)\n" + "z (8, 4) f32 = add(x, y)\n"),
            "R0-1 Q1-2 R2-3 Q3-4 R4-5");
}

// The await of the first copy lies between the halves of the second.
TEST(Partitions, HalvesThatAreQueuedAnewDivideOtherCopies) {
  EXPECT_EQ(partitions_in(std::string(kX) + kOut + kLoss + kY +
                          "y.out (8, 4) f32 pinned_host = transfer(y)\n" + kAwaitOut +
                          "z (8, 4) f32 = add(x, y)\n" + "await(y) updates (y.out)\n"),
            "R0-1 Q1-3 R3-4 Q4-6 R6-7 Q7-8");
}

}  // namespace
}  // namespace snug::runtime
