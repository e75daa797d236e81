// Everything goes with everything: a few steps of every pair of a family, a method, an objective, a
// strategy, a recompute mode and an offloading have the losses and weights of the same job on one
// rank that recomputes nothing and keeps everything on the device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../base/temporary_folder.h"
#include "base/file.h"
#include "pairwise.h"
#include "rank_run.h"

namespace snug::train {
namespace {

constexpr int64_t kSteps = 4;
constexpr double kMaxLossDistance = 1e-5;
// By chance rounding decides the sign of steps of elements whose gradient is almost 0.
constexpr double kMaxWeightDistance = 2e-5;
constexpr int kRows = 4;  // of a step

using Words = std::vector<std::string>;

struct Choice {
  std::string name;
  Words words;
};

// Folders of tests/goldens, whose configurations are used.
const std::vector<std::string> kFamilies{
    "grouped_tied", "bloom",       "falcon",     "falcon_grouped", "falcon_rw",
    "gemma",        "gemma2",      "gemma3",     "gpt2",           "gpt_neox",
    "gpt_oss",      "mistral",     "mixtral",    "olmo2",          "phi",
    "phi3",         "qwen2",       "qwen3",      "qwen3_moe",      "stablelm",
    "t5",           "t5_gated",    "mt5",        "codet5p",        "granite",
    "smollm3",      "glm4",        "hunyuan",    "cohere2",        "ministral3",
    "qwen2_moe",    "glm4_moe",    "qwen3_5",    "gemma4",         "gemma4_sharing",
    "gemma4_moe",   "qwen3_5_moe", "qwen3_next", "apertus",        "lfm2",
    "stablelm_12b"};

bool has_encoder(const std::string& family) {
  return family == "t5" || family == "t5_gated" || family == "mt5" || family == "codet5p";
}

bool has_experts(const std::string& family) {
  return family == "mixtral" || family == "gpt_oss" || family == "qwen3_next" ||
         family.ends_with("_moe");
}

const std::vector<Choice> kMethods{
    {"full", {"method=full"}},
    {"lora", {"method=lora"}},
    {"adapter", {"method=adapter", "adapter_len=3", "adapter_gates=head"}},
    {"adapter_v2", {"method=adapter_v2", "adapter_len=3", "adapter_gates=head"}},
    {"dora", {"method=lora", "use_dora=true"}},
    {"qlora", {"method=qlora", "double_quant=true"}},
    {"qdora", {"method=qlora", "double_quant=false", "use_dora=true"}}};

const std::vector<Choice> kObjectives{{"next_token", {"objective=next_token"}},
                                      {"dpo", {"objective=dpo", "packing=false"}},
                                      {"orpo", {"objective=orpo", "packing=false"}},
                                      {"simpo", {"objective=simpo", "packing=false"}},
                                      {"kto", {"objective=kto", "packing=false"}}};

struct Strategy {
  std::string name;
  int ranks = 1;
};
const std::vector<Strategy> kStrategies{{"ddp", 1},   {"ddp", 2},        {"zero1", 2},
                                        {"zero2", 2}, {"full_shard", 2}, {"shard_grad_op", 2}};

const std::vector<std::string> kRecompute{"none", "gate_up", "attention", "all_but_attention",
                                          "layer"};

const std::vector<Choice> kOffloading{
    {"none", {}},
    {"activations", {"activation_offloading=true"}},
    {"weights", {"offload_params=true", "offload_threshold=64"}},
    {"state", {"offload_optimizer=stream", "offload_threshold=64"}}};

struct Case {
  std::string family;
  Choice method;
  Choice objective;
  Strategy strategy;
  std::string recompute;
  Choice offloading;

  std::string name() const {
    return fmt::format("{}_{}_{}_{}_{}_recompute_{}_offload_{}", family, method.name,
                       objective.name, strategy.name, strategy.ranks, recompute, offloading.name);
  }
};
std::ostream& operator<<(std::ostream& stream, const Case& run) { return stream << run.name(); }

enum Dimension : uint8_t { kFamily, kMethod, kObjective, kStrategy, kRecomputed, kOffloaded };

// What is refused, or is another computation. KTO's estimate is that of a micro-batch, whose rows
// on several ranks are others; what is offloaded of activations is what recompute modes keep.
// Encoder-decoders have the loss of tokens alone, and no prompts. Nothing of experts, and no head
// with a bias of its own, is given another by version 2 of prompts.
bool is_excluded(const testing::PairwiseCases::Pair& pair) {
  if (pair.a == kFamily && pair.b == kMethod) {
    const std::string& family = kFamilies[pair.i];
    const std::string& method = kMethods[pair.j].name;
    if (method == "adapter_v2" && (has_experts(family) || family == "phi")) return true;
    return has_encoder(family) && method.starts_with("adapter");
  }
  if (pair.a == kFamily)
    return pair.b == kObjective && pair.j != 0 && has_encoder(kFamilies[pair.i]);
  // Version 2 goes with the loss of tokens alone, and only full training has state to stream.
  if (pair.a == kMethod && pair.b == kObjective)
    return kMethods[pair.i].name == "adapter_v2" && pair.j != 0;
  if (pair.a == kObjective && pair.b == kStrategy && kObjectives[pair.i].name == "kto")
    return kStrategies[pair.j].ranks > 1;
  if (pair.a == kRecomputed && pair.b == kOffloaded && pair.j == 1)
    return kRecompute[pair.i] != "layer" && kRecompute[pair.i] != "all_but_attention";
  if (pair.a == kMethod && pair.b == kOffloaded && pair.j == 3) return pair.i != 0;
  return false;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  testing::PairwiseCases pairs({kFamilies.size(), kMethods.size(), kObjectives.size(),
                                kStrategies.size(), kRecompute.size(), kOffloading.size()},
                               3, is_excluded);
  for (const testing::Choice& choice : pairs.take())
    cases.push_back({kFamilies[choice[kFamily]], kMethods[choice[kMethod]],
                     kObjectives[choice[kObjective]], kStrategies[choice[kStrategy]],
                     kRecompute[choice[kRecomputed]], kOffloading[choice[kOffloaded]]});
  return cases;
}

class Composition : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TemporaryFolder();
    for (const std::string& family : kFamilies) write_model(family);
    write_data();
  }
  static void TearDownTestSuite() {
    runs_.clear();
    delete folder_;
  }

  // Questions of the example with its answers, its own next to another's, and whether it is its
  // own.
  static void write_data() {
    std::vector<nlohmann::json> records;
    std::istringstream lines(base::read_text_file("examples/wordnet/train.jsonl", 1 << 24));
    for (std::string line; records.size() < 64 && std::getline(lines, line);)
      records.push_back(nlohmann::json::parse(line));
    std::string texts, pairs, labels;
    for (size_t i = 0; i < records.size(); ++i) {
      const nlohmann::json& prompt = records[i]["instruction"];
      const nlohmann::json& own = records[i]["output"];
      const nlohmann::json& other = records[(i + 7) % records.size()]["output"];
      texts += records[i].dump() + "\n";
      pairs +=
          nlohmann::json{{"prompt", prompt}, {"chosen", own}, {"rejected", other}}.dump() + "\n";
      const bool is_own = i % 2 == 0;
      labels +=
          nlohmann::json{
              {"prompt", prompt}, {"completion", is_own ? own : other}, {"label", is_own}}
              .dump() +
          "\n";
    }
    folder_->write("next_token.jsonl", texts);
    for (const char* name : {"dpo.jsonl", "orpo.jsonl", "simpo.jsonl"}) folder_->write(name, pairs);
    folder_->write("kto.jsonl", labels);
  }

  // The configuration with the example's vocabulary.
  static void write_model(const std::string& family) {
    const std::string path = "tests/goldens/" + family + "/model/config.json";
    nlohmann::json config = nlohmann::json::parse(base::read_text_file(path, 1 << 20));
    const auto use = [&](nlohmann::json& of) {
      of["vocab_size"] = 4096;
      if (of.contains("vocab_size_per_layer_input")) of["vocab_size_per_layer_input"] = 4096;
      of["bos_token_id"] = of["eos_token_id"] = 0;
      of["pad_token_id"] = has_encoder(family) ? nlohmann::json(0) : nullptr;
    };
    if (config.contains("encoder")) {
      use(config["encoder"]);
      use(config["decoder"]);
    } else {
      use(config);
    }
    folder_->write(family + "/config.json", config.dump());
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy(std::filesystem::path("examples/wordnet") / name, *folder_ / family);
  }

  static RankRun run(const Case& wanted) {
    Words words{"model=" + (*folder_ / wanted.family).string(),
                "data=" + (*folder_ / (wanted.objective.name + ".jsonl")).string(),
                "init=random",
                "max_length=64",
                "learning_rate=1e-4",
                "lr_scheduler_type=constant",
                "shard_threshold=200",
                "compute_dtype=fp32",
                "strategy=" + wanted.strategy.name,
                "recompute=" + wanted.recompute,
                fmt::format("per_device_train_batch_size={}", kRows / wanted.strategy.ranks)};
    for (const Words& more : {wanted.method.words, wanted.objective.words, wanted.offloading.words})
      words.insert(words.end(), more.begin(), more.end());
    const bool has_targets =
        wanted.method.name != "full" && !wanted.method.name.starts_with("adapter");
    if (has_experts(wanted.family) && has_targets) words.push_back("target_modules=q_proj,o_proj");
    // Weights that the model is compared with are gone after the first step.
    const bool compares = wanted.objective.name == "dpo" || wanted.objective.name == "kto";
    if (wanted.method.name == "full" && compares) words.push_back("precompute_ref_log_probs=true");
    return run_on_ranks(words, wanted.strategy.ranks, kSteps);
  }

  // On one rank, which keeps all that the backward pass reads.
  static const RankRun& plain_run(Case wanted) {
    wanted.strategy = kStrategies.front();
    wanted.recompute = "none";
    wanted.offloading = kOffloading.front();
    const auto [entry, is_new] = runs_.try_emplace(wanted.name());
    if (is_new) entry->second = run(wanted);
    return entry->second;
  }

 private:
  static testing::TemporaryFolder* folder_;
  static std::map<std::string, RankRun> runs_;
};
testing::TemporaryFolder* Composition::folder_ = nullptr;
std::map<std::string, RankRun> Composition::runs_;

TEST_P(Composition, ChangesNothing) {
  const RankRun& plain = plain_run(GetParam());
  const RankRun composed = run(GetParam());
  ASSERT_EQ(plain.losses.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(composed.losses.size(), static_cast<size_t>(kSteps));
  for (size_t i = 0; i < plain.losses.size(); ++i)
    EXPECT_NEAR(composed.losses[i], plain.losses[i], kMaxLossDistance) << "step " << i + 1;
  EXPECT_GT(plain.norms.front(), 0);
  ASSERT_EQ(composed.weights.size(), plain.weights.size());
  ASSERT_FALSE(plain.weights.empty());
  double apart = 0;
  for (const auto& [name, values] : plain.weights) {
    const std::vector<float>& others = composed.weights.at(name);
    ASSERT_EQ(others.size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i)
      apart = std::max(apart, static_cast<double>(std::abs(values[i] - others[i])));
  }
  EXPECT_LE(apart, kMaxWeightDistance);
}

const auto kNames = [](const ::testing::TestParamInfo<Case>& test) { return test.param.name(); };

// What other choices of cases have found.
std::vector<Case> found_cases() {
  return {{"falcon_rw", *std::ranges::find(kMethods, "qlora", &Choice::name), kObjectives[1],
           kStrategies[4], "all_but_attention", kOffloading[2]}};
}

INSTANTIATE_TEST_SUITE_P(Found, Composition, ::testing::ValuesIn(found_cases()), kNames);
INSTANTIATE_TEST_SUITE_P(All, Composition, ::testing::ValuesIn(all_cases()), kNames);

}  // namespace
}  // namespace snug::train
