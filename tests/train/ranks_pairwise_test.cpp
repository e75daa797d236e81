// Twenty steps on ranks that are threads, over combinations that cover every pair of a strategy, a
// method with its optimizer, a number of ranks, an accumulation and so on: losses and weights are
// those of one rank with the same rows, and a second run gives the same bits.
#include <fmt/format.h>

#include <cmath>

#include "../base/temporary_folder.h"
#include "backends/cpu/isa.h"
#include "pairwise.h"
#include "rank_run.h"

namespace snug::train {
namespace {

constexpr int64_t kSteps = 20;
// Of fp32 with adamw. By chance rounding decides the sign of steps of elements whose gradient is
// almost 0.
constexpr double kMaxLossDistance = 1e-5;
constexpr double kMaxWeightDistance = 2e-5;

// Three layers that are sharded on 8 ranks, quantised ones in parts on 2.
constexpr const char* kShape = R"({
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128,
  "intermediate_size": 352, "num_hidden_layers": 3, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 4096, "max_position_embeddings": 512,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu",
  "initializer_range": 0.02, "bos_token_id": 0, "eos_token_id": 0})";

using Words = std::vector<std::string>;

const std::vector<std::string> kStrategies{"ddp",
                                           "zero1",
                                           "zero2",
                                           "shard_grad_op",
                                           "full_shard",
                                           "hybrid_shard_grad_op",
                                           "hybrid_full_shard"};

bool is_hybrid(const std::string& strategy) { return strategy.starts_with("hybrid"); }

struct Method {
  std::string name;
  Words words;
  bool is_coded = false;  // what is kept of weights or moments has fewer bits than fp32, or a
                          // step is a sign
  // Of coded moments: the most by which weights may lie apart, as a share of their spread. What
  // micro-batches of other shapes change says little there, since a code may change by one value.
  double max_share = 0;  // 0: not looked at
};

const std::vector<Method> kMethods{{"adamw", {"method=full", "optim=adamw"}},
                                   {"adamw_8bit", {"method=full", "optim=adamw_8bit"}, true, 0.02},
                                   {"adamw_bf16", {"method=full", "optim=adamw_bf16"}, true},
                                   {"lion", {"method=full", "optim=lion"}, true},
                                   {"lora", {"method=lora", "lora_dropout=0.1"}},
                                   {"qlora", {"method=qlora", "double_quant=true"}}};

const std::vector<std::string> kRecompute{"none", "layer"};
// On one rank all strategies are the same.
const std::vector<int> kRanks{2, 3, 4, 8};
constexpr int kMinHybridRanks = 4;  // two groups of two
const std::vector<int> kAccumulation{1, 3};
const std::vector<std::string> kPacking{"false", "true"};
const std::vector<std::string> kPrefetch{"pre", "post", "none"};

struct Case {
  std::string strategy;
  Method method;
  std::string recompute;
  int ranks = 1;
  int accumulation = 1;
  std::string packing;
  std::string prefetch;
  std::string compute;

  int shards() const {
    if (strategy == "ddp") return 1;
    return is_hybrid(strategy) ? ranks / 2 : ranks;
  }
  // Of a rank and micro-batch, so that one rank has several.
  int rows() const { return ranks == 1 ? 2 : 1; }
  std::string name() const {
    return fmt::format("{}_{}_{}_recompute_{}_{}_ranks_{}_times{}_prefetch_{}", compute, strategy,
                       method.name, recompute, ranks, accumulation,
                       packing == "true" ? "_packed" : "", prefetch);
  }
};

std::ostream& operator<<(std::ostream& stream, const Case& run) { return stream << run.name(); }

// adamw_bf16 is refused where fp32 is computed in.
std::vector<Case> cases_of(const std::string& compute, uint32_t seed) {
  std::vector<Method> methods = kMethods;
  if (compute == "fp32")
    std::erase_if(methods, [](const Method& method) { return method.name == "adamw_bf16"; });
  constexpr size_t kStrategy = 0;
  constexpr size_t kNumber = 3;
  const auto is_of_no_groups = [&](const testing::PairwiseCases::Pair& pair) {
    return pair.a == kStrategy && pair.b == kNumber && is_hybrid(kStrategies[pair.i]) &&
           kRanks[pair.j] < kMinHybridRanks;
  };
  testing::PairwiseCases pairs(
      {kStrategies.size(), methods.size(), kRecompute.size(), kRanks.size(), kAccumulation.size(),
       kPacking.size(), kPrefetch.size()},
      seed, is_of_no_groups);
  std::vector<Case> cases{{"full_shard", methods.front(), "layer", 1, 3, "true", "pre", compute}};
  for (const testing::Choice& choice : pairs.take())
    cases.push_back({kStrategies[choice[0]], methods[choice[1]], kRecompute[choice[2]],
                     kRanks[choice[3]], kAccumulation[choice[4]], kPacking[choice[5]],
                     kPrefetch[choice[6]], compute});
  return cases;
}

// How the rows of a step are spread over time and ranks.
struct Rows {
  int ranks = 1;
  int rows = 1;
  int accumulation = 1;
};

// By how much two runs differ at most.
struct Distance {
  double loss = 0;
  double weight = 0;
};

Distance distance(const RankRun& a, const RankRun& b) {
  Distance most;
  EXPECT_EQ(a.losses.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(b.losses.size(), static_cast<size_t>(kSteps));
  for (size_t i = 0; i < std::min(a.losses.size(), b.losses.size()); ++i)
    most.loss = std::max(most.loss, std::abs(a.losses[i] - b.losses[i]));
  EXPECT_EQ(a.weights.size(), b.weights.size());
  for (const auto& [name, values] : a.weights)
    for (size_t i = 0; i < values.size(); ++i)
      most.weight =
          std::max(most.weight, static_cast<double>(std::abs(values[i] - b.weights.at(name)[i])));
  return most;
}

// The root mean square of how far weights lie apart, by that of how far they lie from their mean.
double share_of_spread(const RankRun& a, const RankRun& b) {
  double sum = 0, squares = 0, apart = 0, count = 0;
  for (const auto& [name, values] : a.weights)
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      const double difference = value - static_cast<double>(b.weights.at(name)[i]);
      sum += value;
      squares += value * value;
      apart += difference * difference;
      ++count;
    }
  return std::sqrt(apart / (squares - sum * sum / count));
}

class RankPairs : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TemporaryFolder();
    folder_->write("model/config.json", kShape);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy(std::filesystem::path("examples/wordnet") / name, *folder_ / "model");
  }
  static void TearDownTestSuite() { delete folder_; }

  static RankRun run(const Case& wanted, const Rows& rows) {
    Words words{"model=" + (*folder_ / "model").string(),
                "data=examples/wordnet/train.jsonl",
                "init=random",
                "max_length=64",
                "learning_rate=5e-4",
                "lr_scheduler_type=constant",
                "shard_threshold=2000",
                "strategy=" + wanted.strategy,
                "recompute=" + wanted.recompute,
                "packing=" + wanted.packing,
                "prefetch=" + wanted.prefetch,
                "compute_dtype=" + wanted.compute,
                fmt::format("gradient_accumulation_steps={}", rows.accumulation),
                fmt::format("per_device_train_batch_size={}", rows.rows)};
    words.insert(words.end(), wanted.method.words.begin(), wanted.method.words.end());
    const int shards = rows.ranks == 1 ? 1 : wanted.shards();
    if (is_hybrid(wanted.strategy) && rows.ranks > 1)
      words.push_back(fmt::format("shard_devices={}", shards));
    return run_on_ranks(words, rows.ranks, kSteps, shards);
  }

  // What one rank changes at most when the same rows come in micro-batches of other shapes.
  static Distance change_by_shape(const Case& wanted, const RankRun& one) {
    const int all = wanted.rows() * wanted.ranks * wanted.accumulation;
    constexpr int kMaxShapes = 4;
    Distance most;
    int shapes = 0;
    for (int rows = 1; rows <= all && shapes < kMaxShapes; ++rows) {
      if (all % rows != 0 || rows == wanted.rows() * wanted.ranks) continue;
      const Distance apart = distance(one, run(wanted, {1, rows, all / rows}));
      most.loss = std::max(most.loss, apart.loss);
      most.weight = std::max(most.weight, apart.weight);
      ++shapes;
    }
    return most;
  }

  static testing::TemporaryFolder* folder_;
};
testing::TemporaryFolder* RankPairs::folder_ = nullptr;

TEST_P(RankPairs, FollowOneRank) {
  const Case& wanted = GetParam();
  if (wanted.compute == "bf16" && !backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
    GTEST_SKIP() << "the processor has no bf16 products";
  const Rows several{wanted.ranks, wanted.rows(), wanted.accumulation};
  const RankRun many = run(wanted, several);
  const RankRun one = run(wanted, {1, wanted.rows() * wanted.ranks, wanted.accumulation});
  const Distance apart = distance(one, many);
  Distance most{kMaxLossDistance, kMaxWeightDistance};
  const bool is_exact = wanted.compute == "fp32" && !wanted.method.is_coded;
  if (!is_exact) {
    const Distance shape = change_by_shape(wanted, one);
    most = {2 * shape.loss, 2 * shape.weight};
  }
  fmt::print("loss {:.3g} of {:.3g}, weight {:.3g} of {:.3g}\n", apart.loss, most.loss,
             apart.weight, most.weight);
  EXPECT_LE(apart.loss, most.loss);
  EXPECT_LE(apart.weight, most.weight);
  if (wanted.method.max_share > 0) {
    const double share = share_of_spread(one, many);
    fmt::print("weights lie apart by {:.3g} of their spread\n", share);
    EXPECT_LE(share, wanted.method.max_share);
  }
  const Distance again = distance(many, run(wanted, several));
  EXPECT_EQ(again.loss, 0);
  EXPECT_EQ(again.weight, 0);
}

const auto kNames = [](const ::testing::TestParamInfo<Case>& test) { return test.param.name(); };
// What other tests of several ranks leave out, at little cost.
std::vector<Case> some_cases() {
  const auto method = [](std::string_view name) {
    return *std::ranges::find(kMethods, name, &Method::name);
  };
  return {{"full_shard", method("adamw_bf16"), "layer", 3, 1, "false", "post", "bf16"},
          {"hybrid_shard_grad_op", method("lora"), "layer", 4, 1, "false", "pre", "fp32"},
          {"zero1", method("qlora"), "none", 2, 3, "false", "pre", "fp32"},
          {"full_shard", method("adamw"), "layer", 2, 1, "true", "pre", "bf16"}};
}

INSTANTIATE_TEST_SUITE_P(Some, RankPairs, ::testing::ValuesIn(some_cases()), kNames);
INSTANTIATE_TEST_SUITE_P(Fp32, RankPairs, ::testing::ValuesIn(cases_of("fp32", 1)), kNames);
INSTANTIATE_TEST_SUITE_P(Bf16, RankPairs, ::testing::ValuesIn(cases_of("bf16", 2)), kNames);

}  // namespace
}  // namespace snug::train
