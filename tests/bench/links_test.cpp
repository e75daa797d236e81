// Links between ranks that are threads: what is measured, under which names, and what becomes of
// the calibration that it is written into.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "bench/link_rates.h"
#include "bench/links.h"
#include "comm/local.h"
#include "plan/time/calibration_file.h"

namespace snug::bench {
namespace {

using plan::RateSample;
using program::Work;

constexpr int64_t kMaxBytes = int64_t{1} << 20;

// What each rank gets.
std::vector<std::vector<RateSample>> samples_of_ranks(int ranks, const LinkGrid& grid,
                                                      const comm::LocalOptions& options) {
  comm::LocalGroup group(ranks, options);
  std::vector<std::vector<RateSample>> samples(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto communicator = group.communicator(rank);
      const comm::Mesh mesh{.all = communicator.get()};
      const auto backend = backends::open_backend("cpu", {.threads = 1, .mesh = &mesh});
      samples[static_cast<size_t>(rank)] = link_rates(*backend, *communicator, grid);
    });
  for (std::thread& thread : threads) thread.join();
  return samples;
}

std::map<std::string, std::vector<RateSample>> by_name(const std::vector<RateSample>& samples) {
  std::map<std::string, std::vector<RateSample>> named;
  for (const RateSample& sample : samples) named[sample.name].push_back(sample);
  return named;
}

TEST(Links, HaveTheNamesAndSizesThatPlansAskFor) {
  for (const int ranks : {2, 3}) {
    const auto all = samples_of_ranks(ranks, {.most_bytes = kMaxBytes}, {});
    const auto named = by_name(all.front());
    ASSERT_EQ(named.size(), 3);
    for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce"}) {
      const std::string name = fmt::format("{} {} ranks", kind, ranks);
      ASSERT_TRUE(named.contains(name)) << name;
      const std::vector<RateSample>& samples = named.at(name);
      EXPECT_LE(samples.front().work, 16);
      EXPECT_NEAR(samples.back().work, kMaxBytes, kMaxBytes * 0.01);
      EXPECT_GE(samples.size(), 15);
      double before = 0;
      for (const RateSample& sample : samples) {
        EXPECT_EQ(sample.unit, Work::interconnect_bytes);
        EXPECT_EQ(sample.shape, std::vector<double>{sample.work});
        EXPECT_GT(sample.work, before) << name;
        before = sample.work;
      }
    }
    for (const auto& of_rank : all) {
      ASSERT_EQ(of_rank.size(), all.front().size());
      for (size_t i = 0; i < of_rank.size(); ++i)
        EXPECT_EQ(of_rank[i].seconds, all.front()[i].seconds) << "ranks disagree";
    }
  }
}

// Of so many ranks, under the name that plans ask for.
TEST(Links, SayHowFastRanksMoveTheirMemory) {
  comm::LocalGroup group(2, {});
  std::vector<RateSample> samples(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      const auto communicator = group.communicator(rank);
      const auto backend = backends::open_backend("cpu", {.threads = 1});
      samples[static_cast<size_t>(rank)] = rank_memory_rate(*backend, *communicator);
    });
  for (std::thread& thread : threads) thread.join();
  for (const RateSample& sample : samples) {
    EXPECT_EQ(sample.name, plan::rank_memory_name(2));
    EXPECT_TRUE(plan::is_of_links(sample));
    EXPECT_EQ(sample.seconds, samples.front().seconds) << "ranks disagree";
    EXPECT_GT(sample.work, 100e6);
    EXPECT_LT(sample.work / sample.seconds, 1e12) << "faster than any memory";
  }
}

// A link of 20 MB/s and 1 ms a message takes at least as long as that, on whatever machine.
TEST(Links, TakeAsLongAsTheLinkDoes) {
  constexpr int64_t kBytes = int64_t{64} << 10;
  const comm::LocalOptions link{.delay_per_message = std::chrono::milliseconds(1),
                                .bytes_per_second = 20e6};
  const auto named =
      by_name(samples_of_ranks(2, {.least_bytes = 4096, .most_bytes = kBytes}, link).front());
  ASSERT_EQ(named.size(), 3);
  for (const auto& [name, samples] : named) {
    EXPECT_GE(samples.front().seconds, 0.001) << name;
    EXPECT_GE(samples.back().seconds, kBytes * 0.99 / 20e6) << name;
  }
}

TEST(Links, OfSeveralMachinesHaveNamesOfTheirOwn) {
  const auto samples =
      samples_of_ranks(2, {.least_bytes = 4096, .most_bytes = 4096, .nodes = 2}, {}).front();
  ASSERT_EQ(samples.size(), 3);
  for (const RateSample& sample : samples) {
    EXPECT_TRUE(sample.name.ends_with("2 ranks on 2 nodes")) << sample.name;
    EXPECT_EQ(sample.unit, Work::network_bytes);
  }
}

RateSample sample(const std::string& name, Work unit, double bytes) {
  return {.name = name, .shape = {bytes}, .unit = unit, .work = bytes, .seconds = 1e-3};
}

TEST(Links, ReplaceTheSamplesOfTheirNamesAndKeepOthers) {
  plan::Calibration calibration;
  calibration.samples = {sample("add f32", Work::bytes, 100),
                         sample("all_gather 2 ranks", Work::interconnect_bytes, 100),
                         sample("all_gather 4 ranks", Work::interconnect_bytes, 100),
                         sample("all_gather 2 ranks", Work::interconnect_bytes, 200)};
  plan::replace_samples(calibration, {sample("all_gather 2 ranks", Work::interconnect_bytes, 300)});
  std::vector<std::pair<std::string, double>> left;
  for (const RateSample& each : calibration.samples) left.emplace_back(each.name, each.work);
  EXPECT_EQ(left, (std::vector<std::pair<std::string, double>>{
                      {"add f32", 100}, {"all_gather 4 ranks", 100}, {"all_gather 2 ranks", 300}}));
}

TEST(Links, AreTabled) {
  const std::string table =
      link_table({sample("all_gather 2 ranks", Work::interconnect_bytes, 4096),
                  sample("all_gather 2 ranks", Work::interconnect_bytes, 8e6),
                  sample("memory of 2 ranks", Work::host_bytes, 5e6)});
  EXPECT_EQ(table,
            "all_gather 2 ranks: latency 1000.0 us\n"
            "  bytes sent     time, us      MB/s\n"
            "        4096       1000.0       4.1\n"
            "     8000000       1000.0    8000.0\n"
            "memory of 2 ranks: each moves 5000.0 MB/s while all do\n");
}

}  // namespace
}  // namespace snug::bench
