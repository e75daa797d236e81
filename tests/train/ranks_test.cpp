// Training on several ranks follows the curve of one rank with the same rows, whatever the strategy
// shards, and gives the same bits on a second run.
#include "rank_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

namespace snug::train {
namespace {

// By chance rounding decides the sign of steps of elements whose gradient is almost 0, so weights
// are apart by a share of the learning rate.
constexpr int64_t kSteps = 3;
constexpr double kMaxLossDistance = 1e-5;
constexpr double kMaxWeightDistance = 2e-5;

struct Case {
  std::string name;
  std::vector<std::string> words;
  int ranks = 2;
  int rows = 1;  // of a rank and micro-batch
  int accumulation = 1;
  int shards = 0;
  // Codes of 8 bits may fall on another side of a threshold: the bound is twice what one rank
  // changes when its micro-batches have another shape.
  bool is_coded = false;
};

std::vector<std::string> words_of(const Case& run, int ranks) {
  std::vector<std::string> words{
      "model=examples/wordnet",
      "data=examples/wordnet/train.jsonl",
      "init=random",
      "max_length=64",
      "packing=true",
      "compute_dtype=fp32",
      "learning_rate=5e-4",
      "lr_scheduler_type=constant",
      "shard_threshold=2000",
      fmt::format("gradient_accumulation_steps={}", run.accumulation),
      fmt::format("per_device_train_batch_size={}", run.rows * run.ranks / ranks)};
  words.insert(words.end(), run.words.begin(), run.words.end());
  return words;
}

// By how much two runs differ at most.
struct Distance {
  double loss = 0;
  double weight = 0;
};

Distance distance(const RankRun& a, const RankRun& b) {
  Distance most;
  EXPECT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < std::min(a.losses.size(), b.losses.size()); ++i)
    most.loss = std::max(most.loss, std::abs(a.losses[i] - b.losses[i]));
  for (const auto& [name, values] : a.weights)
    for (size_t i = 0; i < values.size(); ++i)
      most.weight =
          std::max(most.weight, static_cast<double>(std::abs(values[i] - b.weights.at(name)[i])));
  return most;
}

std::ostream& operator<<(std::ostream& stream, const Case& run) { return stream << run.name; }

class RankCurves : public testing::TestWithParam<Case> {};

TEST_P(RankCurves, AreThoseOfOneRank) {
  const Case& run = GetParam();
  const RankRun one = run_on_ranks(words_of(run, 1), 1, kSteps);
  const RankRun many = run_on_ranks(words_of(run, run.ranks), run.ranks, kSteps, run.shards);
  ASSERT_EQ(many.losses.size(), static_cast<size_t>(kSteps));
  for (size_t i = 0; i < one.norms.size(); ++i)
    EXPECT_NEAR(many.norms.at(i) / one.norms[i], 1, 1e-4) << "norm of step " << i + 1;
  const Distance apart = distance(one, many);
  EXPECT_LE(apart.loss, kMaxLossDistance);
  double most = kMaxWeightDistance;
  if (run.is_coded) {
    Case reshaped = run;
    reshaped.rows = 1;
    reshaped.accumulation = run.accumulation * run.ranks;
    reshaped.ranks = 1;
    most = 2 * distance(one, run_on_ranks(words_of(reshaped, 1), 1, kSteps)).weight;
  }
  EXPECT_LE(apart.weight, most);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, std::vector<std::string> words, int ranks,
                       int accumulation = 1, int shards = 0) {
    all.push_back({std::move(name), std::move(words), ranks, 1, accumulation, shards});
  };
  for (const char* strategy : {"ddp", "zero1", "zero2", "shard_grad_op", "full_shard"})
    add(fmt::format("full_{}", strategy),
        {"method=full", fmt::format("strategy={}", strategy), "recompute=layer"}, 2, 3);
  for (const char* strategy : {"ddp", "zero2", "full_shard"})
    add(fmt::format("lora_{}", strategy),
        {"method=lora", "lora_dropout=0.1", fmt::format("strategy={}", strategy)}, 3);
  add("qlora_full_shard", {"method=qlora", "double_quant=true", "strategy=full_shard"}, 3);
  add("full_8bit_zero2", {"method=full", "optim=adamw_8bit", "strategy=zero2"}, 2);
  all.back().is_coded = true;
  add("full_in_backward_full_shard",
      {"method=full", "strategy=full_shard", "optim_in_backward=true", "max_grad_norm=0"}, 2);
  add("full_in_backward_zero1",
      {"method=full", "strategy=zero1", "optim_in_backward=true", "max_grad_norm=0"}, 2);
  add("full_hybrid", {"method=full", "strategy=hybrid_full_shard", "shard_devices=2"}, 4, 2, 2);
  add("full_prefetch_none", {"method=full", "strategy=full_shard", "prefetch=none"}, 4);
  return all;
}

TEST(RankBits, AreTheSameOnASecondRun) {
  for (const Case& run : cases()) {
    if (run.name != "full_zero1" && run.name != "full_hybrid" && run.name != "lora_zero2") continue;
    SCOPED_TRACE(run.name);
    const RankRun first = run_on_ranks(words_of(run, run.ranks), run.ranks, 2, run.shards);
    const RankRun second = run_on_ranks(words_of(run, run.ranks), run.ranks, 2, run.shards);
    const Distance apart = distance(first, second);
    EXPECT_EQ(apart.loss, 0);
    EXPECT_EQ(apart.weight, 0);
  }
}

// All that travels in a step is in the plan, to the byte, on every rank.
TEST(RankBytes, AreThosePlanned) {
  for (const char* strategy : {"ddp", "shard_grad_op", "full_shard"})
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", strategy, ranks));
      const Case job{.name = strategy,
                     .words = {"method=full", fmt::format("strategy={}", strategy)},
                     .ranks = ranks,
                     .accumulation = 2};
      const RankRun run = run_on_ranks(words_of(job, ranks), ranks, 2);
      EXPECT_GT(run.planned_bytes, 0);
      for (const int64_t sent : run.sent_bytes) EXPECT_EQ(sent, run.planned_bytes);
    }
}

// Where parts lie in host memory between their uses, and where their optimizer works there.
TEST(RankBits, AreTheSameWithTensorsOnTheHost) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> placements{
      {"full_full_shard", {"offload_params=true", "offload_optimizer=stream"}},
      {"full_full_shard", {"offload_optimizer=host"}},
      {"full_zero1", {"offload_params=true", "offload_optimizer=host"}},
      {"full_ddp", {"offload_optimizer=stream"}},
      {"qlora_full_shard", {"offload_params=true"}},
      {"full_hybrid", {"offload_params=true", "offload_optimizer=stream"}},
      {"full_in_backward_full_shard", {"offload_params=true", "offload_optimizer=host"}}};
  for (const Case& run : cases())
    for (const auto& [name, offload] : placements) {
      if (run.name != name) continue;
      SCOPED_TRACE(fmt::format("{} {}", name, fmt::join(offload, " ")));
      std::vector<std::string> words = words_of(run, run.ranks);
      const RankRun kept = run_on_ranks(words, run.ranks, 2, run.shards);
      words.insert(words.end(), offload.begin(), offload.end());
      words.emplace_back("offload_threshold=1KiB");
      const RankRun moved = run_on_ranks(words, run.ranks, 2, run.shards);
      EXPECT_LT(moved.device_bytes, kept.device_bytes);
      const Distance apart = distance(kept, moved);
      EXPECT_EQ(apart.loss, 0);
      EXPECT_EQ(apart.weight, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(, RankCurves, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace snug::train
