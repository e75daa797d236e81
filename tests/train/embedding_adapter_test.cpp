// LoRA on an embedding in every form of a job: several ranks learn what one does, and recomputing,
// offloading and updates in the backward pass change no bit of it.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../cli/tiny_model.h"
#include "rank_run.h"

namespace snug::train {
namespace {

constexpr int64_t kSteps = 4;
constexpr double kLearningRate = 1e-2;

struct Distance {
  double loss = 0;
  double weight = 0;
};

Distance distance(const RankRun& a, const RankRun& b) {
  Distance most;
  EXPECT_EQ(a.losses.size(), b.losses.size());
  for (size_t step = 0; step < a.losses.size(); ++step)
    most.loss = std::max(most.loss, std::abs(a.losses[step] - b.losses.at(step)));
  EXPECT_FALSE(a.weights.empty());
  for (const auto& [name, values] : a.weights)
    for (size_t i = 0; i < values.size(); ++i)
      most.weight = std::max(most.weight,
                             static_cast<double>(std::abs(values[i] - b.weights.at(name).at(i))));
  return most;
}

class EmbeddingAdapter : public ::testing::Test {
 protected:
  EmbeddingAdapter() {
    cli::write_tiny_shape(folder_, "untied");
    cli::write_tiny_shape(folder_, "tied");
    auto config = nlohmann::json::parse(cli::kTinyConfig);
    config["tie_word_embeddings"] = true;
    folder_.write("tied/config.json", config.dump());
    folder_.write("data.json", fmt::format("[{}]", records()));
  }

  std::string in(const char* model) const { return "model=" + (folder_ / model).string() + " "; }

  RankRun run(const std::string& more, int ranks = 1) const {
    std::istringstream text(fmt::format(
        "data={} init=random target_modules=embed_tokens,q_proj lora_r=4 max_length=160 "
        "packing=false compute_dtype=fp32 lr_scheduler_type=constant learning_rate={} "
        "shard_threshold=100 per_device_train_batch_size=1 {}",
        (folder_ / "data.json").string(), kLearningRate, more));
    std::map<std::string, std::string> by_key;
    for (std::string word; text >> word;) by_key[word.substr(0, word.find('='))] = word;
    std::vector<std::string> words;
    words.reserve(by_key.size());
    for (const auto& [key, word] : by_key) words.push_back(word);
    return run_on_ranks(words, ranks, kSteps);
  }

 private:
  static std::string records() {
    std::string all;
    for (int i = 0; i < 8; ++i)
      all += fmt::format(R"({}{{"instruction": "Say {}.", "input": "", "output": "{}"}})",
                         i == 0 ? "" : ", ", static_cast<char>('a' + i),
                         std::string(static_cast<size_t>(i) + 1, static_cast<char>('a' + i)));
    return all;
  }

  testing::TemporaryFolder folder_;
};

const std::string kModule = "model.embed_tokens.lora_embedding_";

// A is zero where training begins, so that B has a gradient only from the second step on.
TEST_F(EmbeddingAdapter, ABeginsAtZeroAndLearns) {
  for (const char* model : {"untied", "tied"}) {
    const RankRun plain = run(in(model) + "method=lora target_modules=q_proj");
    const RankRun adapted = run(in(model) + "method=lora");
    EXPECT_EQ(adapted.losses.front(), plain.losses.front());
    EXPECT_NE(adapted.losses.back(), plain.losses.back());
    EXPECT_EQ(adapted.weights.at(kModule + "A").size(), 4U * 258U);
    EXPECT_EQ(adapted.weights.at(kModule + "B").size(), 32U * 4U);
    double most = 0;
    for (const float value : adapted.weights.at(kModule + "A"))
      most = std::max(most, static_cast<double>(std::abs(value)));
    EXPECT_GT(most, kLearningRate / 2);
  }
}

TEST_F(EmbeddingAdapter, FormsOfTheJobGiveTheSameBits) {
  for (const std::string& method : {std::string("method=lora "), std::string("method=qlora ")}) {
    const std::string start = in("tied") + method + "gradient_accumulation_steps=2 ";
    const RankRun plain = run(start + "recompute=keep_all");
    for (const char* form :
         {"recompute=gate_up", "recompute=layer", "recompute=layer activation_offloading=true",
          "offload_params=true offload_optimizer=stream offload_threshold=100B recompute=layer",
          "offload_optimizer=host offload_threshold=100B"}) {
      SCOPED_TRACE(method + form);
      const Distance apart = distance(plain, run(start + form));
      EXPECT_EQ(apart.loss, 0);
      EXPECT_EQ(apart.weight, 0);
    }
    const std::string clip = in("untied") + method + "max_grad_norm=0 ";
    EXPECT_EQ(distance(run(clip), run(clip + "optim_in_backward=true")).weight, 0);
  }
}

TEST_F(EmbeddingAdapter, SeveralRanksLearnWhatOneDoes) {
  for (const std::string& method :
       {std::string("method=lora "), std::string("method=qlora double_quant=true ")}) {
    const RankRun one = run(in("untied") + method + "gradient_accumulation_steps=4");
    for (const auto& [ranks, strategy] :
         {std::pair{2, "ddp"}, {2, "full_shard"}, {2, "zero1"}, {4, "zero2"}, {4, "full_shard"}}) {
      SCOPED_TRACE(fmt::format("{} {} ranks {}", method, ranks, strategy));
      const RankRun many = run(fmt::format("{}{}gradient_accumulation_steps={} strategy={}",
                                           in("untied"), method, 4 / ranks, strategy),
                               ranks);
      const Distance apart = distance(one, many);
      EXPECT_LE(apart.loss, 1e-5);
      EXPECT_LE(apart.weight, kLearningRate / 25);
      for (const int64_t sent : many.sent_bytes) EXPECT_EQ(sent, many.planned_bytes);
    }
  }
}

// Micro-batches and rows add up to the same gradients.
TEST_F(EmbeddingAdapter, OneTimesFourIsFourTimesOne) {
  const std::string start = in("tied") + "method=lora ";
  const Distance apart = distance(run(start + "per_device_train_batch_size=4"),
                                  run(start + "gradient_accumulation_steps=4"));
  EXPECT_LE(apart.loss, 1e-5);
  EXPECT_LE(apart.weight, kLearningRate / 25);
}

TEST_F(EmbeddingAdapter, InBf16LearnsWhatFp32Does) {
  const RankRun wide = run(in("untied") + "method=lora");
  const RankRun narrow = run(in("untied") + "method=lora compute_dtype=bf16");
  ASSERT_EQ(wide.losses.size(), narrow.losses.size());
  for (size_t i = 0; i < wide.losses.size(); ++i)
    EXPECT_NEAR(narrow.losses[i], wide.losses[i], 2e-2 * wide.losses[i]);
}

}  // namespace
}  // namespace snug::train
