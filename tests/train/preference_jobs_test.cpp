// Learning from pairs of answers in every form of a job: several ranks learn what one does, and
// recomputing, offloading and updates in the backward pass change no bit of it.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../cli/tiny_model.h"
#include "rank_run.h"

namespace snug::train {
namespace {

constexpr int64_t kSteps = 3;
constexpr double kLearningRate = 5e-3;

// Sequences of unlike lengths; the answers of the last are cut.
constexpr const char* kPairs =
    R"({"prompt": "Say a.", "chosen": " a", "rejected": " never, that is too much"}
{"prompt": "Name a tree, please.", "chosen": " oak", "rejected": " red"}
{"prompt": "Cold?", "chosen": " icy, and then some", "rejected": " no"}
{"prompt": "What do bees make?", "chosen": " honey", "rejected": " a noise"}
{"prompt": "x", "chosen": "y", "rejected": "zz"}
{"prompt": "A river is", "chosen": " a stream of water, larger than a creek", "rejected": " a kind of stone, as any lump of it would be"}
)";

struct Distance {
  double loss = 0;
  double measure = 0;  // of a measure's size, where that is above one
  double norm = 0;     // of the norm's size
  double weight = 0;
};

Distance distance(const RankRun& a, const RankRun& b) {
  Distance most;
  EXPECT_EQ(a.losses.size(), b.losses.size());
  EXPECT_EQ(a.measures.size(), a.losses.size());
  EXPECT_EQ(b.measures.size(), b.losses.size());
  for (size_t step = 0; step < a.losses.size(); ++step) {
    most.loss = std::max(most.loss, std::abs(a.losses[step] - b.losses.at(step)));
    most.norm = std::max(most.norm, std::abs(a.norms[step] / b.norms.at(step) - 1));
    for (size_t i = 0; i < a.measures.at(step).size(); ++i) {
      const double x = a.measures[step][i];
      const double y = b.measures.at(step).at(i);
      most.measure = std::max(most.measure, std::abs(x - y) / std::max(1.0, std::abs(x)));
    }
  }
  for (const auto& [name, values] : a.weights)
    for (size_t i = 0; i < values.size(); ++i)
      most.weight = std::max(most.weight,
                             static_cast<double>(std::abs(values[i] - b.weights.at(name).at(i))));
  return most;
}

class PreferenceJobs : public ::testing::Test {
 protected:
  PreferenceJobs() {
    cli::write_tiny_shape(folder_, "shape");
    folder_.write("pairs.jsonl", kPairs);
    auto config = nlohmann::json::parse(cli::kTinyConfig);
    config.update(
        {{"model_type", "mixtral"}, {"num_local_experts", 5}, {"num_experts_per_tok", 2}});
    folder_.write("experts/config.json", config.dump());
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(folder_ / "shape" / file, folder_ / "experts" / file);
  }
  std::string experts() const { return "method=lora model=" + (folder_ / "experts").string(); }

  // Of two words for one key the last counts.
  std::vector<std::string> words(const std::string& more) const {
    std::istringstream text(fmt::format(
        "model={} data={} init=random objective=dpo beta=0.5 max_length=40 "
        "packing=false compute_dtype=fp32 lr_scheduler_type=constant learning_rate={} "
        "shard_threshold=100 per_device_train_batch_size=1 {}",
        (folder_ / "shape").string(), (folder_ / "pairs.jsonl").string(), kLearningRate, more));
    std::map<std::string, std::string> by_key;
    for (std::string word; text >> word;) by_key[word.substr(0, word.find('='))] = word;
    std::vector<std::string> words;
    words.reserve(by_key.size());
    for (const auto& [key, word] : by_key) words.push_back(word);
    return words;
  }
  RankRun run(const std::string& more, int ranks = 1,
              const RunLength& length = {.steps = kSteps}) const {
    return run_on_ranks(words(more), ranks, length);
  }

  // The job that keeps all, which learns; recomputation and offloading give its bits.
  RankRun run_in_every_form(const std::string& job) const {
    RankRun plain = run(job + "recompute=keep_all");
    EXPECT_GT(std::abs(plain.losses.back() - plain.losses.front()), 1e-3);
    for (const char* form :
         {"recompute=layer activation_offloading=true",
          "offload_params=true offload_optimizer=stream offload_threshold=100B recompute=layer"}) {
      SCOPED_TRACE(fmt::format("{} {}", job, form));
      const Distance apart = distance(plain, run(job + form));
      EXPECT_EQ(apart.loss, 0);
      EXPECT_EQ(apart.measure, 0);
      EXPECT_EQ(apart.weight, 0);
    }
    return plain;
  }

 private:
  testing::TemporaryFolder folder_;
};

// What is compared moves: from equal answers to margins of pairs that were not learnt from yet.
void expect_movement(const RankRun& run) {
  EXPECT_NEAR(run.losses.at(0), std::log(2.0), 1e-6);
  EXPECT_GT(std::abs(run.losses.back() - std::log(2.0)), 1e-3);
}

constexpr const char* kFrozenHead =
    "method=full freeze_modules=lm_head.weight precompute_ref_log_probs=true";

// Of the pairs twelve examples with labels. Rows of one example each, whose other answers do not
// follow from the micro-batch.
const std::string kLabelled = " objective=kto undesirable_weight=0.5 packing=true max_segments=2 ";
constexpr size_t kDivergence = 5;  // among the measures

void expect_near(const RankRun& one, const RankRun& many) {
  const Distance apart = distance(one, many);
  EXPECT_LE(apart.loss, 1e-5);
  EXPECT_LE(apart.measure, 2e-5);
  EXPECT_LE(apart.norm, 1e-4);
  EXPECT_LE(apart.weight, kLearningRate / 25);
}

TEST_F(PreferenceJobs, SeveralRanksLearnWhatOneDoes) {
  const std::string kept = "precompute_ref_log_probs=true";
  for (const std::string& method : {std::string("method=lora"), "method=lora " + kept,
                                    "method=qlora " + kept, std::string(kFrozenHead), experts()}) {
    const RankRun one = run(method + " gradient_accumulation_steps=4");
    expect_movement(one);
    for (const auto& [ranks, strategy] :
         {std::pair{2, "ddp"}, {2, "full_shard"}, {2, "zero1"}, {4, "zero2"}}) {
      SCOPED_TRACE(fmt::format("{}, {} ranks, {}", method, ranks, strategy));
      const RankRun many = run(
          fmt::format("{} gradient_accumulation_steps={} strategy={}", method, 4 / ranks, strategy),
          ranks);
      expect_near(one, many);
      EXPECT_GT(many.planned_bytes, 0);
      for (const int64_t sent : many.sent_bytes) EXPECT_EQ(sent, many.planned_bytes);
    }
  }
}

// The last step of an epoch may have fewer pairs than there are ranks.
TEST_F(PreferenceJobs, ARankWithoutPairsChangesNothing) {
  for (const std::string method :
       {"method=lora", "method=lora precompute_ref_log_probs=true", kFrozenHead}) {
    SCOPED_TRACE(method);
    const RunLength length{.steps = 2, .end_row = 3};
    const RankRun one = run(method + " per_device_train_batch_size=2", 1, length);
    expect_near(one, run(method + " strategy=ddp", 2, length));
    expect_near(one, run(method + " strategy=full_shard", 2, length));
    // And as if there had been no other row or rank.
    const RunLength single{.steps = 1, .end_row = 1};
    const RankRun alone = run(method, 1, single);
    expect_near(alone, run(method + " per_device_train_batch_size=2", 1, single));
    expect_near(alone, run(method + " strategy=full_shard", 2, single));
  }
}

TEST_F(PreferenceJobs, FormsOfTheJobGiveTheSameBits) {
  const std::vector<std::string> forms{
      "recompute=gate_up",
      "recompute=attention",
      "recompute=all_but_attention",
      "recompute=layer",
      "recompute=all_but_attention activation_offloading=true",
      "recompute=layer activation_offloading=true",
      "offload_params=true offload_threshold=100B",
      "offload_params=true offload_optimizer=stream offload_threshold=100B recompute=layer "
      "activation_offloading=true",
      "offload_optimizer=host offload_threshold=100B"};
  for (const std::string& method :
       {std::string("method=lora"), std::string("method=qlora double_quant=true"),
        std::string(kFrozenHead), experts()}) {
    const std::string start = method + " gradient_accumulation_steps=2 ";
    const RankRun plain = run(start + "recompute=keep_all");
    expect_movement(plain);
    for (const std::string& form : forms) {
      SCOPED_TRACE(fmt::format("{} {}", method, form));
      const RankRun other = run(start + form);
      EXPECT_LT(other.device_bytes, plain.device_bytes);
      const Distance apart = distance(plain, other);
      EXPECT_EQ(apart.loss, 0);
      EXPECT_EQ(apart.measure, 0);
      EXPECT_EQ(apart.norm, 0);
      EXPECT_EQ(apart.weight, 0);
    }
  }
}

TEST_F(PreferenceJobs, UpdatesInTheBackwardPassGiveTheSameBits) {
  for (const std::string method : {"method=lora", kFrozenHead})
    for (const auto& [ranks, strategy] : {std::pair{1, "ddp"}, {2, "full_shard"}}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", method, ranks));
      const std::string start = fmt::format("{} strategy={} max_grad_norm=0 ", method, strategy);
      const RankRun after = run(start, ranks);
      const Distance apart = distance(after, run(start + "optim_in_backward=true", ranks));
      EXPECT_EQ(apart.loss, 0);
      EXPECT_EQ(apart.measure, 0);
      EXPECT_EQ(apart.weight, 0);
    }
}

// Of 4 bits too: the model without its adapter, made in every step or once.
TEST_F(PreferenceJobs, BothReferencesAreAlike) {
  for (const std::string method :
       {"method=lora", "method=qlora", "method=qlora double_quant=true"}) {
    SCOPED_TRACE(method);
    for (const std::string rows :
         {"per_device_train_batch_size=2",
          "per_device_train_batch_size=2 packing=true max_segments=4 max_length=64"})
      expect_near(run(method + " " + rows), run(method + " precompute_ref_log_probs=true " + rows));
  }
}

// Their means are the sums of the same answers' log-probabilities over so many tokens.
TEST_F(PreferenceJobs, OddsAreThoseOfTheTokensOfAnswers) {
  const RunLength single{.steps = 1, .end_row = 1};
  const RankRun sums = run("method=lora", 1, single);
  const RankRun means = run("method=lora objective=orpo", 1, single);
  for (const size_t answer : {4U, 5U}) {  // logps/chosen and logps/rejected
    const double tokens = sums.measures.at(0).at(answer) / means.measures.at(0).at(answer);
    EXPECT_GE(tokens, 1 - 1e-3);
    EXPECT_NEAR(tokens, std::round(tokens), 1e-3);
  }
}

// The head's gradient is made where the backward pass begins, of untied and of tied heads, in full
// training and next to LoRA.
TEST_F(PreferenceJobs, AHeadThatTrainsLearnsInEveryFormOfTheJob) {
  const std::string lora = "method=lora modules_to_save=lm_head ";
  for (const std::string& method :
       {std::string("method=full objective=orpo "), lora + "objective=orpo ",
        std::string("method=full precompute_ref_log_probs=true "),
        lora + "precompute_ref_log_probs=true ",
        "method=full precompute_ref_log_probs=true per_device_train_batch_size=2" + kLabelled}) {
    const std::string start = method + " gradient_accumulation_steps=2 ";
    const RankRun plain = run_in_every_form(start);
    const std::string clip = method + " max_grad_norm=0 ";
    EXPECT_EQ(distance(run(clip), run(clip + "optim_in_backward=true")).weight, 0);
    if (method.ends_with(kLabelled)) continue;  // their estimate is of a micro-batch
    for (const char* strategy : {"ddp", "zero1", "zero2", "full_shard"}) {
      SCOPED_TRACE(fmt::format("{} {}", method, strategy));
      const RankRun many = run(fmt::format("{} strategy={}", method, strategy), 2);
      expect_near(plain, many);
      for (const int64_t sent : many.sent_bytes) EXPECT_EQ(sent, many.planned_bytes);
    }
  }
}

// A loss of two means, of tokens and of pairs, without a reference.
TEST_F(PreferenceJobs, OddsAreLearnedInEveryFormOfTheJob) {
  const std::string full = "method=full freeze_modules=lm_head.weight";
  for (const std::string& method : {std::string("method=lora"), full}) {
    const std::string start = method + " objective=orpo gradient_accumulation_steps=2 ";
    const RankRun plain = run_in_every_form(start);
    for (const char* strategy : {"ddp", "full_shard"}) {
      SCOPED_TRACE(fmt::format("{} {}", method, strategy));
      expect_near(plain, run(fmt::format("{} objective=orpo strategy={}", method, strategy), 2));
    }
    const std::string clip = method + " objective=orpo max_grad_norm=0 ";
    EXPECT_EQ(distance(run(clip), run(clip + "optim_in_backward=true")).weight, 0);
  }
  // Of 4 bits, and with pairs that share a row.
  const std::string all = "method=qlora objective=orpo max_length=160 ";
  expect_near(run(all + "per_device_train_batch_size=6"), run(all + "packing=true"));
}

TEST_F(PreferenceJobs, LabelsAreLearnedOnSeveralRanks) {
  for (const std::string& method :
       {"method=lora" + kLabelled, "method=qlora precompute_ref_log_probs=true" + kLabelled,
        kFrozenHead + kLabelled}) {
    // A micro-batch of all ranks, of which the divergence is estimated, is as large in each.
    const RankRun one = run(method + "per_device_train_batch_size=4 gradient_accumulation_steps=2");
    EXPECT_NEAR(one.losses.at(0), 0.375, 0.13);  // half of the weights
    EXPECT_GT(std::abs(one.losses.back() - one.losses.front()), 1e-3);
    EXPECT_GT(one.measures.back().at(kDivergence), 1e-3);
    for (const auto& [ranks, strategy] :
         {std::pair{2, "ddp"}, {2, "full_shard"}, {2, "zero1"}, {4, "zero2"}}) {
      SCOPED_TRACE(fmt::format("{}, {} ranks, {}", method, ranks, strategy));
      const RankRun many = run(fmt::format("{}per_device_train_batch_size={} strategy={} "
                                           "gradient_accumulation_steps=2",
                                           method, 4 / ranks, strategy),
                               ranks);
      expect_near(one, many);
      for (const int64_t sent : many.sent_bytes) EXPECT_EQ(sent, many.planned_bytes);
    }
    // A rank without examples changes nothing.
    const RunLength single{.steps = 1, .end_row = 1};
    expect_near(run(method, 1, single), run(method + "strategy=ddp", 2, single));
  }
}

TEST_F(PreferenceJobs, LabelsAreLearnedInEveryFormOfTheJob) {
  for (const std::string& method : {"method=lora" + kLabelled, kFrozenHead + kLabelled}) {
    const std::string start =
        method + "per_device_train_batch_size=3 gradient_accumulation_steps=2 ";
    const RankRun plain = run(start + "recompute=keep_all");
    for (const char* form :
         {"recompute=layer activation_offloading=true",
          "offload_params=true offload_optimizer=stream offload_threshold=100B recompute=layer"}) {
      SCOPED_TRACE(fmt::format("{} {}", method, form));
      const Distance apart = distance(plain, run(start + form));
      EXPECT_EQ(apart.loss, 0);
      EXPECT_EQ(apart.measure, 0);
      EXPECT_EQ(apart.weight, 0);
    }
    const std::string clip = method + "per_device_train_batch_size=3 max_grad_norm=0 ";
    EXPECT_EQ(distance(run(clip), run(clip + "optim_in_backward=true")).weight, 0);
  }
  // Both references.
  const std::string lora = "method=lora" + kLabelled + "max_length=160 ";
  const std::string apart = lora + "per_device_train_batch_size=12 ";
  const RankRun all = run(apart);
  expect_near(all, run(apart + "precompute_ref_log_probs=true"));
}

// Rows that hold several pairs weigh each as rows of one do.
TEST_F(PreferenceJobs, PackedPairsCountAsOthersDo) {
  const std::string all = "method=lora max_length=160 ";
  const RankRun apart = run(all + "per_device_train_batch_size=6");
  const RankRun packed = run(all + "packing=true");
  expect_movement(packed);
  expect_near(apart, packed);
}

}  // namespace
}  // namespace snug::train
