// Training on several ranks follows the curve of one rank with the same rows, whatever the strategy
// shards, and gives the same bits on a second run.
#include "../base/temporary_folder.h"
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
  std::string data{};  // of a record a row; else of the example, packed
  int64_t shard_threshold = 2000;
};

std::vector<std::string> words_of(const Case& run, int ranks) {
  std::vector<std::string> words{
      "model=examples/wordnet",
      run.data.empty() ? "data=examples/wordnet/train.jsonl" : "data=" + run.data,
      "init=random",
      "max_length=64",
      fmt::format("packing={}", run.data.empty()),
      "compute_dtype=fp32",
      "learning_rate=5e-4",
      "lr_scheduler_type=constant",
      fmt::format("shard_threshold={}", run.shard_threshold),
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

class RankCurves : public ::testing::TestWithParam<Case> {};

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
  add("dora_full_shard", {"method=lora", "use_dora=true", "strategy=full_shard"}, 2, 3);
  all.back().shard_threshold = 0;  // magnitudes too would be divided
  for (const char* strategy : {"zero2", "full_shard"}) {
    add(fmt::format("adapter_{}", strategy),
        {"method=adapter", "adapter_gates=head", fmt::format("strategy={}", strategy)}, 3, 2);
    all.back().shard_threshold = 0;  // gates too are divided
    add(fmt::format("adapter_v2_{}", strategy),
        {"method=adapter_v2", "adapter_gates=head", fmt::format("strategy={}", strategy)}, 2);
    all.back().shard_threshold = 0;
  }
  add("full_8bit_zero2", {"method=full", "optim=adamw_8bit", "strategy=zero2"}, 2);
  all.back().is_coded = true;
  for (const char* strategy : {"zero1", "full_shard"}) {
    add(fmt::format("full_lion_{}", strategy),
        {"method=full", "optim=lion", fmt::format("strategy={}", strategy)}, 2);
    all.back().is_coded = true;
  }
  for (const char* strategy : {"ddp", "zero1", "zero2", "full_shard"}) {
    add(fmt::format("full_muon_{}", strategy),
        {"method=full", "optim=muon", fmt::format("strategy={}", strategy)}, 2);
    all.back().is_coded = true;
  }
  add("full_adafactor_ddp", {"method=full", "optim=adafactor", "strategy=ddp"}, 3);
  all.back().is_coded = true;
  for (const char* strategy : {"zero1", "full_shard"})
    add(fmt::format("full_average_{}", strategy),
        {"method=full", "ema_decay=0.5", fmt::format("strategy={}", strategy)}, 2);
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

// Records of very different lengths, a row each.
constexpr const char* kUnequalData = R"({"instruction": "Name it.", "output": "oak"}
{"instruction": "Say what a river is.", "output": "a large natural stream of water that is larger than a creek"}
{"instruction": "A word for cold?", "output": "icy"}
{"instruction": "What do bees do?", "output": "they gather nectar and pollen, and make honey of it in the hive"}
{"instruction": "The last one: what is a stone?", "output": "a lump or mass of hard consolidated mineral matter"}
)";

// The last step of an epoch may have fewer rows than there are ranks: those that are left without
// one change neither loss nor norm nor weights, and other ranks' rows count as on one rank.
TEST(RankRows, ARankWithoutLossChangesNothing) {
  const testing::TemporaryFolder folder;
  folder.write("five.jsonl", kUnequalData);
  for (Case run : cases()) {
    if (run.name != "full_zero2" && !run.name.starts_with("lora_ddp") &&
        run.name != "qlora_full_shard")
      continue;
    SCOPED_TRACE(run.name);
    run.data = (folder / "five.jsonl").string();
    run.accumulation = 1;
    // Of a step of several rows the last has one, with which rank 0 works alone.
    const RunLength length{.steps = 2, .end_row = run.ranks + 1};
    const RankRun one = run_on_ranks(words_of(run, 1), 1, length);
    const RankRun many = run_on_ranks(words_of(run, run.ranks), run.ranks, length, run.shards);
    EXPECT_NEAR(many.norms.at(1) / one.norms.at(1), 1, 1e-4);
    const Distance apart = distance(one, many);
    EXPECT_LE(apart.loss, kMaxLossDistance);
    EXPECT_LE(apart.weight, kMaxWeightDistance);
    // And as if there had been no other rank.
    const RunLength single{.steps = 1, .end_row = 1};
    Case alone = run;
    alone.ranks = 1;
    const Distance added =
        distance(run_on_ranks(words_of(alone, 1), 1, single),
                 run_on_ranks(words_of(run, run.ranks), run.ranks, single, run.shards));
    EXPECT_LE(added.loss, kMaxLossDistance);
    EXPECT_LE(added.weight, kMaxWeightDistance);
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

INSTANTIATE_TEST_SUITE_P(, RankCurves, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace snug::train
