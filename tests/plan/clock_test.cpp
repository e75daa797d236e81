// Timelines of programs whose operations take known times: text in, seconds out.
#include "plan/time/clock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "program/text/text.h"

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
      "a (1000000) f32 weight run = read() updates (slot) {file_width 4} channel storage\n"
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

// A gather of 8e6 bytes, which takes 4 ms, begins and goes on next to what follows, or takes the
// processors from it.
TEST(Clock, CollectivesTakeTheProcessorsWhereNoneIsLeft) {
  const std::string text =
      "program clock\ntensor a (3) f32\ntensor w (2000000) f32\n"
      "x (3) bf16 = cast(a)\nw.gathered (4000000) f32 = all_gather(w) {ranks 2} channel "
      "interconnect\n"
      "y (3) bf16 = cast(a)\nawait(w) updates (w.gathered)\nz (3) f32 = cast(a)";
  std::vector<RateSample> samples{
      {"cast f32 > bf16", {18}, Work::bytes, 18, 3e-3},
      {"cast f32 > f32", {24}, Work::bytes, 24, 4e-3},
      {"all_gather 2 ranks", {8e6}, Work::interconnect_bytes, 8e6, 4e-3}};
  Rates rates(samples);
  const Program program = parse_text(text);
  EXPECT_NEAR(simulate(program, rates, {}).seconds, 3e-3 + 4e-3 + 4e-3, 1e-6);
  rates.share_processors(2, {.threads_per_processor = 1, .collectives_compute = true});
  const Timeline timeline = simulate(program, rates, {});
  EXPECT_NEAR(timeline.seconds, 3e-3 + 4e-3 + 3e-3 + 4e-3, 1e-6);
  EXPECT_NEAR(timeline.operations[2].start_seconds, 7e-3, 1e-6);
  // Twice as many threads compute as there are processors; what is sent was measured like that.
  rates.share_processors(2, {.threads_per_processor = 2, .collectives_compute = true});
  EXPECT_NEAR(simulate(program, rates, {}).seconds, 6e-3 + 4e-3 + 6e-3 + 8e-3, 1e-6);
}

// 1e6 bytes that last, at 1 GB/s while both ranks move memory; what was just made lies in a cache.
TEST(Clock, RanksShareTheMemory) {
  const auto seconds_of = [](const std::string& tensor, int64_t ranks) {
    Rates rates({{"cast f32 > f32", {2e6}, Work::bytes, 2e6, 5e-4},
                 {rank_memory_name(2), {1e8}, Work::host_bytes, 1e8, 0.1}});
    rates.share_processors(ranks, {});
    return simulate(parse_text("program clock\ntensor a (250000) f32 " + tensor +
                               "\nx (250000) f32 = cast(a)"),
                    rates, {})
        .seconds;
  };
  EXPECT_NEAR(seconds_of("weight run", 1), 5e-4, 1e-9);
  EXPECT_NEAR(seconds_of("weight run", 2), 1e-3, 1e-9);
  EXPECT_NEAR(seconds_of("weight run", 3), 5e-4, 1e-9) << "of so many it was not measured";
  EXPECT_NEAR(seconds_of("", 2), 5e-4, 1e-9);
}

const Rates& card() {
  static const Rates rates = Rates::of_data_sheet({.bf16_flops_per_second = 1e15,
                                                   .f32_flops_per_second = 1e14,
                                                   .bytes_per_second = 4e12,
                                                   .host_bytes_per_second = 64e9});
  return rates;
}

// The host goes on after the device, and the device after the host, a join later each time.
TEST(Clock, JoinsOfHostAndDeviceTakeTime) {
  const Program program = parse_text(
      "program clock\ntensor a (1000000) f32\n"
      "x (1000000) f32 pinned_host = transfer(a) channel device_to_host\n"
      "await(a) updates (x) channel host\n"
      "z (1000000) f32 pinned_host = add(x, x) channel host on_host\n"
      "y (1000000) f32 = transfer(z) channel host_to_device\n"
      "await(z) updates (y)\n"
      "await(a) updates (x)");
  const Timeline timeline = simulate(program, card(), {});
  const double join = card().roofline().join_seconds;
  EXPECT_GT(join, 0);
  const auto end_of = [&](size_t i) {
    return timeline.operations[i].start_seconds + timeline.operations[i].seconds;
  };
  EXPECT_NEAR(timeline.operations[2].start_seconds, end_of(0) + join, 1e-12);
  EXPECT_NEAR(timeline.operations[3].start_seconds, end_of(2) + join, 1e-12);
  EXPECT_NEAR(timeline.operations[4].start_seconds, end_of(3), 1e-12) << "both are the device's";
}

// The host reads what a step gave before it queues the next update, next to what the device
// computes: that shows where it computes for less than a join.
TEST(Clock, AMicroBatchTakesAtLeastAJoin) {
  const auto step_of = [](int elements) {
    Job job;
    for (const auto name : {program::ProgramName::micro_first, program::ProgramName::update})
      job.programs.push_back(
          parse_text(fmt::format("program {}\ntensor a ({}) f32\nx ({}) bf16 = cast(a)",
                                 name_of(name), elements, elements)));
    return job;
  };
  const auto alone = [](const Job& job) { return simulate(job.programs[0], card(), {}).seconds; };
  const Job small = step_of(1);
  const Job large = step_of(100'000'000);
  const double join = card().roofline().join_seconds;
  ASSERT_LT(alone(small), join);
  ASSERT_GT(alone(large), join);
  EXPECT_NEAR(step_seconds(small, 1, card(), {}), join + alone(small), 1e-12);
  EXPECT_NEAR(step_seconds(large, 1, card(), {}), 2 * alone(large), 1e-12);
}

constexpr const char* kSegments =
    "program p\ntensor q (64, 12) bf16\ntensor k (64, 6) bf16\ntensor v (64, 6) bf16\n"
    "tensor b (4, 2) i32\n"
    "o (64, 12) bf16, lse (4, 64) f32 = attention(q, k, v, b, b) {heads 4, kv_heads 2, "
    "head_dim 3, causal, kernel few_queries 4}";

std::vector<std::string> names_of(const std::vector<program::PricedShare>& shares) {
  std::vector<std::string> names;
  for (const program::PricedShare& share : shares) names.push_back(share.key.form.name());
  return names;
}

// Segments of few queries have an algorithm of their own, which is what is priced of them.
TEST(Clock, AttentionIsPricedByTheAlgorithmOfEachSegment) {
  const Program program = parse_text(kSegments);
  const program::OperationView view{program, program.operations[0]};
  const std::string others = "attention bf16 bf16 bf16 > bf16 f32";
  const std::string few = others + " few";
  EXPECT_EQ(names_of(priced_shares(view, program::full_rows(4))), std::vector{few});
  EXPECT_EQ(names_of(priced_shares(view, program::full_rows(5))), std::vector{others});

  constexpr int32_t kBounds[] = {0, 2, 2, 62, 0, 0, 0, 0};
  program::BatchBounds bounds;
  bounds.set(program.find("b"), kBounds);
  const std::vector<program::PricedShare> shares = priced_shares(view, bounds);
  ASSERT_EQ(names_of(shares), (std::vector{few, others}));
  EXPECT_EQ(shares[0].key.multiplies, base::DType::f32);
  EXPECT_EQ(shares[1].key.multiplies, base::DType::bf16);
  const program::Cost whole = cost(view, bounds);
  EXPECT_NEAR(shares[0].cost.flops + shares[1].cost.flops, whole.flops, 1e-6);
  EXPECT_NEAR(shares[0].cost.bytes + shares[1].cost.bytes, whole.bytes, 1e-6);
  EXPECT_NEAR(shares[0].key.work, 3 * 4 * 12, 1e-6) << "pairs, operations, width";
  EXPECT_EQ(rate_key(view, bounds).form.name(), others) << "what most of it is";
  // The first sample is what a launch takes, which is one for both.
  std::vector<RateSample> samples{{"cast f32 > bf16", {6}, Work::bytes, 6, 1e-8}};
  for (const auto& [share, seconds] : {std::pair{shares[0], 2e-3}, std::pair{shares[1], 5e-3}})
    samples.push_back(
        {share.key.form.name(), share.key.shape, Work::flops, share.key.work, seconds});
  EXPECT_NEAR(simulate(program, Rates(samples), bounds).seconds, 7e-3, 1e-6);
}

TEST(Clock, GradientsOfFewKeysArePricedAsSuch) {
  const Program program = parse_text(
      "program p\ntensor q (128, 12) bf16\ntensor k (128, 6) bf16\ntensor v (128, 6) bf16\n"
      "tensor do (128, 12) bf16\ntensor o (128, 12) bf16\ntensor lse (4, 128) f32\n"
      "tensor b (4, 2) i32\n"
      "dq (128, 12) bf16, dk (128, 6) bf16, dv (128, 6) bf16 = "
      "attention_grad(do, q, k, v, o, lse, b, b) {heads 4, kv_heads 2, head_dim 3, causal, "
      "kernel few_queries 16 few_keys 64}");
  const program::OperationView view{program, program.operations[0]};
  for (const double tokens : {16.0, 64.0, 65.0, 128.0}) {
    const auto shares = priced_shares(view, program::full_rows(static_cast<int64_t>(tokens)));
    ASSERT_EQ(shares.size(), 1U);
    EXPECT_EQ(shares[0].key.form.name().ends_with(" few"), tokens <= 64) << tokens;
  }
}

}  // namespace
}  // namespace snug::plan
