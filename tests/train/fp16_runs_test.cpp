// Training in fp16 with a loss scale, by the binary: steps that are skipped change nothing,
// whatever the optimizer, the ranks and the places of its state; a run that goes on in the middle
// of them ends with the same bits; ten in a row end a run.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tiny_job.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;

// One document, so that all steps see the same row and a skipped step loses nothing.
constexpr const char* kOneDocument = "{\"text\": \"The same words in every step of the run.\"}\n";
constexpr const char* kOnePair =
    "{\"prompt\": \"Say a word.\", \"chosen\": \"A word.\", \"rejected\": \"No.\"}\n";
constexpr const char* kSameSteps =
    "backend=" SNUG_TEST_BACKEND
    " deterministic=true compute_dtype=fp16 max_length=64 packing=false shuffle=false "
    "lr_scheduler_type=constant "
    "warmup_steps=0 warmup_ratio=0 learning_rate=1e-3 save_steps=0 overwrite_output_dir=true";

class Fp16Runs : public ::testing::Test {
 protected:
  Fp16Runs() {
    job_.folder().write("one.jsonl", kOneDocument);
    job_.folder().write("pair.jsonl", kOnePair);
  }

  cli::BinaryRun run(const std::string& output, const std::string& more) const {
    std::vector<std::string> words = job_.words(output, std::string(kSameSteps) + " " + more);
    words.push_back("data=" + job_.path(data_).string());
    return cli::run_snug(words);
  }

  std::vector<Json> train(const std::string& output, const std::string& more) const {
    const cli::BinaryRun done = run(output, more);
    EXPECT_EQ(done.exit_code, 0) << done.output();
    std::vector<Json> lines;
    std::stringstream stream(cli::contents_of(job_.path(output) / "metrics.jsonl"));
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  std::string result(const std::string& output) const {
    const fs::path folder = job_.path(output);
    const std::string adapter = cli::contents_of(folder / "adapter/adapter_model.safetensors");
    return adapter.empty() ? cli::contents_of(folder / "model/model.safetensors") : adapter;
  }

  // With a scale that `skipped` steps find too large, and with the scale that they leave: the same
  // weights.
  void expect_skipped_steps_to_change_nothing(const std::string& more) const {
    SCOPED_TRACE(more);
    const std::vector<Json> large = train("large", more + " max_steps=9 initial_scale_power=22");
    ASSERT_EQ(large.size(), 9U);
    const auto skipped = large.back()["skipped_steps"].get<int64_t>();
    ASSERT_GE(skipped, 2);
    ASSERT_LE(skipped, 7);
    for (size_t i = 0; i < large.size(); ++i) {
      const bool is_skipped = static_cast<int64_t>(i) < skipped;
      EXPECT_EQ(large[i]["grad_norm"].is_null(), is_skipped) << large[i];
      EXPECT_EQ(large[i]["loss_scale"],
                std::ldexp(1.0, 22 - static_cast<int>(
                                         std::min<int64_t>(static_cast<int64_t>(i) + 1, skipped))));
    }
    const std::vector<Json> small =
        train("small", more + " max_steps=" + std::to_string(9 - skipped) +
                           " initial_scale_power=" + std::to_string(22 - skipped));
    EXPECT_EQ(small.back()["skipped_steps"], 0);
    EXPECT_EQ(small.back()["loss"], large.back()["loss"]);
    EXPECT_EQ(small.back()["learning_rate"], large.back()["learning_rate"]);
    EXPECT_FALSE(result("large").empty());
    EXPECT_EQ(result("large"), result("small"));
    fs::remove_all(job_.path("large"));
    fs::remove_all(job_.path("small"));
  }

  TinyJob job_;
  const char* data_ = "one.jsonl";
};

// On the cpu backend, and with the binary of tests/bench on an emulated card.
TEST_F(Fp16Runs, SkippedStepsChangeNothing) {
  for (const char* optimizer : {"adamw", "adamw_8bit", "lion", "adafactor", "muon"})
    expect_skipped_steps_to_change_nothing(std::string("method=full optim=") + optimizer);
  for (const char* method : {"lora", "qlora"})
    expect_skipped_steps_to_change_nothing(std::string("method=") + method);
  expect_skipped_steps_to_change_nothing("method=full backend=reference");
}

// Losses of pairs, whose gradients begin with other numbers.
TEST_F(Fp16Runs, NorOfObjectivesOfPairs) {
  data_ = "pair.jsonl";
  for (const char* objective : {"dpo", "orpo"})
    expect_skipped_steps_to_change_nothing(std::string("method=lora objective=") + objective);
}

TEST_F(Fp16Runs, NorWithStateOnTheHostNorOnSeveralRanks) {
  for (const char* place : {"stream", "host"})
    expect_skipped_steps_to_change_nothing(
        std::string("method=full offload_threshold=0 max_grad_norm=0 offload_optimizer=") + place);
  for (const char* strategy : {"zero1", "full_shard"})
    expect_skipped_steps_to_change_nothing(
        std::string("method=full shard_threshold=0 devices=2 strategy=") + strategy);
  expect_skipped_steps_to_change_nothing(
      "method=full optim=adamw_8bit shard_threshold=0 devices=2 strategy=full_shard");
}

// In a checkpoint are the scale, how many steps were skipped and how many were finite since.
TEST_F(Fp16Runs, GoOnFromTheMiddleOfSkippedSteps) {
  const std::string settings =
      "method=lora max_steps=9 save_steps=1 initial_scale_power=20 loss_scale_window=3 "
      "hysteresis=2";
  const std::vector<Json> whole = train("whole", settings);
  ASSERT_EQ(whole.size(), 9U);
  EXPECT_EQ(whole[1]["skipped_steps"], 2);
  EXPECT_LT(whole[8]["skipped_steps"], 7);
  for (const int step : {1, 2, 7}) {
    const std::string name = "from" + std::to_string(step);
    const fs::path checkpoint = job_.path("whole") / ("checkpoint-" + std::to_string(step));
    train(name, settings + " resume_from_checkpoint=" + checkpoint.string());
    EXPECT_EQ(result(name), result("whole")) << step;
    EXPECT_EQ(cli::contents_of(job_.path(name) / "checkpoint-9/optimizer.safetensors"),
              cli::contents_of(job_.path("whole") / "checkpoint-9/optimizer.safetensors"));
  }
}

TEST_F(Fp16Runs, TheScaleGrowsAfterItsWindow) {
  const std::vector<Json> lines =
      train("grows", "method=lora max_steps=7 initial_scale_power=4 loss_scale_window=3");
  std::vector<double> scales;
  for (const Json& line : lines) scales.push_back(line["loss_scale"]);
  EXPECT_EQ(scales, (std::vector<double>{16, 16, 32, 32, 32, 64, 64}));
  const std::vector<Json> fixed = train("fixed", "method=lora max_steps=4 loss_scale=3");
  for (const Json& line : fixed) EXPECT_EQ(line["loss_scale"], 3.0);
}

TEST_F(Fp16Runs, TenSkippedStepsInARowEndTheRun) {
  const cli::BinaryRun stopped = run("stopped", "method=lora max_steps=20 initial_scale_power=60");
  EXPECT_EQ(stopped.exit_code, 4) << stopped.output();
  for (const char* part : {"step 10: the gradients of 10 steps in a row were not finite",
                           "no checkpoint was saved before"})
    EXPECT_TRUE(testing::contains(stopped.err, part)) << stopped.err;
}

TEST_F(Fp16Runs, WhatDoesNotGoWithItIsRefused) {
  struct Refusal {
    const char* words;
    const char* message;
  };
  for (const Refusal& refusal :
       {Refusal{"optim=adamw_bf16", "with fp16 use optim=adamw"},
        Refusal{"optim_in_backward=true max_grad_norm=0", "a step that has others is skipped"},
        Refusal{"gradient_dtype=bf16", "bf16 gradients need compute_dtype=bf16"},
        Refusal{"fp16=true compute_dtype=bf16", "leave one of them out"},
        Refusal{"compute_dtype=fp32 loss_scale=8", "is for compute_dtype=fp16"}}) {
    const cli::BinaryRun refused =
        run("refused", std::string("method=full max_steps=1 ") + refusal.words);
    EXPECT_EQ(refused.exit_code, 2) << refusal.words;
    EXPECT_TRUE(testing::contains(refused.err, refusal.message)) << refused.err;
  }
  // Of cards that multiply fp16 and no bf16.
  const cli::BinaryRun card = cli::run_snug(
      {"plan", "model=llama-3.2-1b", "method=lora", "device=t4", "compute_dtype=fp16"});
  EXPECT_EQ(card.exit_code, 2);
  EXPECT_TRUE(testing::contains(card.err, "snug has kernels for 8.0 and later")) << card.err;
}

TEST_F(Fp16Runs, IsPlannedForACard) {
  const cli::BinaryRun card = cli::run_snug(
      {"plan", "model=llama-3.2-1b", "method=lora", "device=h100", "compute_dtype=fp16", "--json"});
  EXPECT_EQ(card.exit_code, 0) << card.output();
  EXPECT_GT(Json::parse(card.out)["step_seconds"].get<double>(), 0);
}

// Weights that were made in fp32, without loss scaling: logits of both types agree.
TEST_F(Fp16Runs, ScoresAgreeWithFp32) {
  const auto score = [](const char* type) {
    const cli::BinaryRun done =
        cli::run_snug({"score", "model=examples/wordnet", "ids=1 5 9 200 31", "--json",
                       std::string("compute_dtype=") + type});
    EXPECT_EQ(done.exit_code, 0) << done.output();
    return Json::parse(done.out);
  };
  const Json half = score("fp16");
  const Json full = score("fp32");
  for (const auto& [key, value] : full.items()) {
    if (!value.is_number_float()) continue;
    EXPECT_NEAR(half[key].get<double>(), value.get<double>(), 5e-3 * std::abs(value.get<double>()))
        << key;
  }
  const auto words = [](const char* type) {
    const cli::BinaryRun done =
        cli::run_snug({"generate", "model=examples/wordnet", "prompt=The dog is",
                       "max_new_tokens=8", "temperature=0", std::string("compute_dtype=") + type});
    EXPECT_EQ(done.exit_code, 0) << done.output();
    return done.out;
  };
  EXPECT_EQ(words("fp16"), words("fp32"));
}

}  // namespace
}  // namespace snug::train
