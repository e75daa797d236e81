// Timelines of programs whose operations take known times: text in, seconds out.
#include "plan/clock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "program/text.h"

namespace snug::plan {
namespace {

using program::parse_text;
using program::Program;

// Every copy of n f32 elements (a cast to bf16) takes n milliseconds, every one to f32 2 n.
Rates rates() {
  std::vector<RateSample> samples;
  for (const double n : {1.0, 2.0, 3.0, 10.0}) {
    samples.push_back({"cast f32 > bf16", {6 * n}, Work::bytes, 6 * n, n * 1e-3});
    samples.push_back({"cast f32 > f32", {8 * n}, Work::bytes, 8 * n, 2 * n * 1e-3});
  }
  return Rates(samples);
}

Timeline timeline_of(const std::string& text) {
  return simulate(parse_text("program clock\n" + text), rates(), {});
}

TEST(Clock, OneStreamTakesTheSum) {
  const Timeline timeline = timeline_of(
      "tensor a (3) f32\ntensor b (2) f32\n"
      "x (3) bf16 = cast(a)\ny (2) bf16 = cast(b)\nz (3) f32 = cast(a)");
  EXPECT_NEAR(timeline.seconds, 11e-3, 1e-9);
  ASSERT_EQ(timeline.operations.size(), 3U);
  EXPECT_NEAR(timeline.operations[1].start_seconds, 3e-3, 1e-9);
  EXPECT_NEAR(timeline.operations[2].seconds, 6e-3, 1e-9);
}

TEST(Clock, ChannelsOverlapWhereNothingOrdersThem) {
  const Timeline timeline = timeline_of(
      "tensor a (10) f32\ntensor b (3) f32\n"
      "x (10) bf16 = cast(a)\ny (3) bf16 = cast(b) channel device_to_host");
  EXPECT_NEAR(timeline.seconds, 10e-3, 1e-9);
}

TEST(Clock, ReadersWaitForWritersOnOtherChannels) {
  const Timeline timeline = timeline_of(
      "tensor a (3) f32\n"
      "x (3) f32 = cast(a)\ny (3) bf16 = cast(x) channel device_to_host");
  EXPECT_NEAR(timeline.seconds, 9e-3, 1e-9);
}

TEST(Clock, WritersWaitForReadersOnOtherChannels) {
  // The second operation overwrites, through a view, what the first one still reads.
  const Timeline timeline = timeline_of(
      "tensor a (10) f32\ntensor b (2) f32\ntensor part (2) f32 view of a at 4\n"
      "x (10) bf16 = cast(a)\npart = cast(b) channel device_to_host");
  EXPECT_NEAR(timeline.seconds, 14e-3, 1e-9);
}

TEST(Clock, SharedScratchOrdersChannels) {
  const Timeline timeline = timeline_of(
      "tensor a (3) f32\ntensor b (3) f32\ntensor s (64) u8 workspace\n"
      "x (3) bf16 = cast(a) workspace s\ny (3) bf16 = cast(b) workspace s channel device_to_host");
  EXPECT_NEAR(timeline.seconds, 6e-3, 1e-9);
}

// It goes on next to what follows, but begins when what comes before it in the list is done.
TEST(Clock, TransfersBeginInListOrderAndOverlapWhatFollows) {
  const Timeline timeline = timeline_of(
      "tensor a (10) f32\ntensor b (4) f32\n"
      "x (10) bf16 = cast(a)\nb.out (4) f32 pinned_host = transfer(b) channel device_to_host\n"
      "y (3) f32 = cast(a)\nawait(b) updates (b.out)\nz (3) f32 = cast(a)");
  ASSERT_EQ(timeline.operations.size(), 5U);
  const double copied = timeline.operations[1].start_seconds + timeline.operations[1].seconds;
  EXPECT_NEAR(timeline.operations[1].start_seconds, 10e-3, 1e-9);
  EXPECT_NEAR(timeline.operations[2].start_seconds, 10e-3, 1e-9);
  EXPECT_GE(timeline.operations[3].start_seconds, copied);
}

// Neither direction of the link waits for the other.
TEST(Clock, BothDirectionsRunSideBySide) {
  const Timeline timeline = timeline_of(
      "tensor a (8) f32\ntensor b (8) f32 pinned_host\n"
      "a.out (8) f32 pinned_host = transfer(a) channel device_to_host\n"
      "b.in (8) f32 = transfer(b) channel host_to_device\n"
      "await(a) updates (a.out)\nawait(b) updates (b.in)");
  EXPECT_EQ(timeline.operations[0].start_seconds, 0);
  EXPECT_EQ(timeline.operations[1].start_seconds, 0);
}

// Files at the assumed rate, one after the other; what is made waits for none of them.
TEST(Clock, FilesAreReadNextToWhatIsMade) {
  const Timeline timeline = timeline_of(
      "tensor slot (64) u8 staging pinned_host\n"
      "a (1000000) f32 weight run = read() updates (slot) channel storage\n"
      "b (1000) f32 weight run = fill()\n"
      "c (1000000) bf16 weight run = read() updates (slot) {file_width 4} channel storage");
  const double seconds = 4e6 / kAssumedStorageBytesPerSecond;
  EXPECT_NEAR(timeline.operations[0].seconds, seconds, 1e-9);
  EXPECT_EQ(timeline.operations[1].start_seconds, 0);
  EXPECT_NEAR(timeline.operations[2].start_seconds, seconds, 1e-9);
  EXPECT_NEAR(timeline.operations[2].seconds, seconds, 1e-9);
}

TEST(Clock, AStepIsFirstThenNextThenUpdate) {
  Job job;
  for (const auto& [name, elements] : {std::pair{program::ProgramName::micro_first, 1},
                                       {program::ProgramName::micro_next, 2},
                                       {program::ProgramName::update, 10},
                                       {program::ProgramName::evaluate, 3}}) {
    Program program = parse_text(fmt::format("program {}\ntensor a ({}) f32\nx ({}) bf16 = cast(a)",
                                             name_of(name), elements, elements));
    job.programs.push_back(std::move(program));
  }
  EXPECT_NEAR(step_seconds(job, 1, rates(), {}), 11e-3, 1e-9);
  EXPECT_NEAR(step_seconds(job, 4, rates(), {}), 17e-3, 1e-9);
}

}  // namespace
}  // namespace snug::plan
