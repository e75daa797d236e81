// Whole runs that make answers, have them rewarded and learn from them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "../base/captured_stream.h"
#include "../cli/tiny_model.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "train/train.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;

class AnswerRuns : public ::testing::Test {
 protected:
  AnswerRuns() {
    cli::write_tiny_shape(folder_, "shape");
    folder_.write("data.jsonl",
                  "{\"prompt\": \"Say a.\", \"answer\": \"a\"}\n"
                  "{\"prompt\": \"Name the longest of them.\", \"answer\": \"a river\"}\n"
                  "{\"prompt\": \"Say c.\", \"answer\": \"c\"}\n"
                  "{\"prompt\": \"And b?\", \"answer\": \"b\"}\n");
  }

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  // A key that is given has no other value.
  formats::Recipe recipe(const std::string& output, const std::string& more) const {
    const std::vector<std::string> defaults{"model=" + path("shape").string(),
                                            "data=" + path("data.jsonl").string(),
                                            "output_dir=" + path(output).string(),
                                            "init=random",
                                            "method=lora",
                                            "objective=grpo",
                                            "rewards=length",
                                            "num_generations=4",
                                            "max_completion_length=8",
                                            "per_device_train_batch_size=8",
                                            "learning_rate=0.01",
                                            "compute_dtype=fp32",
                                            "threads=1",
                                            "lr_scheduler_type=constant"};
    return formats::load_recipe("", cli::with_defaults(defaults, more));
  }
  void run(const std::string& output, const std::string& more) const {
    ASSERT_EQ(train(recipe(output, more)), 0);
  }
  std::string failure_of(const std::string& more) const {
    return testing::user_error_of([&] { train(recipe("refused", more)); });
  }

  std::vector<Json> metrics(const std::string& name) const {
    std::vector<Json> lines;
    std::istringstream text(base::read_text_file(path(name) / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  std::string adapter(const std::string& name) const {
    return base::read_text_file(path(name) / "adapter/adapter_model.safetensors");
  }
  Json json(const std::string& file) const { return Json::parse(base::read_text_file(path(file))); }

  testing::TemporaryFolder folder_;
  testing::CapturedStream said_{stderr};
};

// Four updates learn from eight answers, of which each reads half.
constexpr const char* kFourUpdates =
    " steps_per_generation=2 per_device_train_batch_size=4 "
    "num_iterations=2";

TEST_F(AnswerRuns, LearnWhatIsRewarded) {
  run("run",
      "max_steps=40 method=full learning_rate=0.02 num_generations=8 "
      "per_device_train_batch_size=64 "
      "rewards=format:[!-~]* max_completion_length=2");
  const std::vector<Json> found = metrics("run");
  ASSERT_EQ(found.size(), 40);
  double first = 0;
  double last = 0;
  for (size_t i = 0; i < 5; ++i) {
    first += found[i]["reward"].get<double>() / 5;
    last += found[found.size() - 1 - i]["reward"].get<double>() / 5;
  }
  EXPECT_LT(first, 0.4) << "a third of all bytes can be seen";
  EXPECT_GT(last, 0.7);
  for (const Json& line : found) {
    EXPECT_EQ(line["clip_ratio/region_mean"], 0) << "who made the answers learns from them";
    EXPECT_LE(line["completions/max_length"], 2);
  }
  const Json measured = json("run/measured.json");
  EXPECT_EQ(measured["device"]["peak_bytes"], json("run/plan.json")["device"]["peak_bytes"]);
  EXPECT_FALSE(base::read_text_file(path("run/samples.jsonl")).empty());
}

// Decoding, with pages and cut rows of logits, and the training forward pass.
TEST_F(AnswerRuns, LogProbabilitiesOfMakingAnswersAreThoseOfTraining) {
  for (const char* sampling : {"", " temperature=0.7", " temperature=1.5 top_k=5 top_p=0.9"}) {
    run("exact", std::string("max_steps=4 old_logprobs=recompute overwrite_output_dir=true") +
                     kFourUpdates + sampling);
    const Json first = metrics("exact").front();
    EXPECT_LT(first["sampling/sampling_logp_difference/max"], 1e-5) << sampling;
    EXPECT_GT(first["completions/mean_length"], 1);
  }
}

TEST_F(AnswerRuns, OldLogProbabilitiesAreTheSameFromBoth) {
  run("generation", std::string("max_steps=4 old_logprobs=generation") + kFourUpdates);
  run("recompute", std::string("max_steps=4 old_logprobs=recompute") + kFourUpdates);
  const std::vector<Json> one = metrics("generation");
  const std::vector<Json> other = metrics("recompute");
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(one[i]["grad_norm"], other[i]["grad_norm"],
                1e-3 * one[i]["grad_norm"].get<double>());
  EXPECT_FALSE(one[1].contains("reward")) << "no answers were made for the second update";
}

// Answers are made without it. A new adapter adds 0 and has nothing to drop, and where hardly
// anything is dropped, the model that learns is the one that made the answers.
TEST_F(AnswerRuns, DropoutIsOfTrainingAloneAndMeasured) {
  run("none", "max_steps=3");
  EXPECT_FALSE(metrics("none").front().contains("dropout/kl"));
  run("hardly", "max_steps=3 lora_dropout=1e-6 gradient_accumulation_steps=2");
  for (const Json& line : metrics("hardly"))
    EXPECT_LT(std::abs(line["dropout/kl"].get<double>()), 1e-6);
  run("half", "max_steps=3 lora_dropout=0.5");
  const std::vector<Json> half = metrics("half");
  EXPECT_LT(std::abs(half[0]["dropout/kl"].get<double>()), 1e-6);
  EXPECT_EQ(half[0]["reward"], metrics("none")[0]["reward"]);
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_GT(half[i]["dropout/kl"], 1e-5);
    EXPECT_LT(half[i]["dropout/kl"], 1);
    EXPECT_EQ(half[i]["clip_ratio/region_mean"], 0)
        << "with one update the ratio is 1 all the same";
  }
  // With more of them it has the dropout in it, against answers that were made without.
  run("more", std::string("max_steps=4 lora_dropout=0.5 old_logprobs=recompute") + kFourUpdates);
  EXPECT_LT(metrics("more")[0]["sampling/sampling_logp_difference/max"], 1e-5);
}

// Rewards, draws and what is left to learn of a generation are as if nothing had happened.
TEST_F(AnswerRuns, GoOnWithTheSameBitsWithinAGeneration) {
  const std::string job = std::string("beta=0.05 lora_dropout=0.1") + kFourUpdates;
  run("whole", "max_steps=7 " + job);
  for (const int step : {1, 2, 4, 6}) {
    const std::string name = "part" + std::to_string(step);
    run(name, "max_steps=" + std::to_string(step) + " " + job);
    run(name, "max_steps=7 resume_from_checkpoint=auto " + job);
    EXPECT_EQ(adapter(name), adapter("whole")) << step;
    ASSERT_EQ(metrics(name).size(), 7);
    EXPECT_EQ(metrics(name).back()["loss"], metrics("whole").back()["loss"]);
  }
}

TEST_F(AnswerRuns, MicroBatchesChangeRoundingAlone) {
  run("one", "max_steps=3 per_device_train_batch_size=16");
  run("four", "max_steps=3 per_device_train_batch_size=4 gradient_accumulation_steps=4");
  const std::vector<Json> one = metrics("one");
  const std::vector<Json> four = metrics("four");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(one[i]["reward"], four[i]["reward"]);
    EXPECT_NEAR(one[i]["grad_norm"], four[i]["grad_norm"],
                1e-3 * one[i]["grad_norm"].get<double>());
  }
}

// Equal rewards teach nothing; with resamples, other prompts take their place.
TEST_F(AnswerRuns, PromptsThatAreRewardedAlikeAreReplaced) {
  run("equal", "max_steps=2 rewards=exact max_resamples=2");
  const Json equal = metrics("equal").front();
  EXPECT_EQ(equal["frac_reward_zero_std"], 1);
  EXPECT_EQ(equal["resampled_groups"], 4) << "two groups, twice, and nobody says a river";
  run("other", "max_steps=2 max_resamples=2");
  EXPECT_EQ(metrics("other").front()["resampled_groups"], 0);
}

TEST_F(AnswerRuns, AnswersThatDidNotEndCanBeLeftOut) {
  run("masked", "max_steps=2 max_completion_length=1 mask_truncated_completions=true");
  const Json masked = metrics("masked").front();
  EXPECT_EQ(masked["completions/clipped_ratio"], 1);
  EXPECT_EQ(masked["trained_tokens"], 0);
  EXPECT_EQ(masked["grad_norm"], 0);
}

// All prompts in their order, by the same draws: what step 1 learns from is what step 0 evaluates.
TEST_F(AnswerRuns, EvaluationsAnswerAsTrainingDoes) {
  const std::string job = "max_steps=4 shuffle=false per_device_train_batch_size=16";
  const std::string data = " eval_data=" + path("data.jsonl").string();
  run("with", job + data + " eval_steps=2 eval_on_start=true");
  const std::vector<Json> found = metrics("with");
  ASSERT_EQ(found.size(), 7) << "four steps, and evaluations at 0, 2 and 4";
  int64_t compared = 0;
  for (const auto& [key, value] : found[0].items()) {
    if (key == "step" || key == "eval_reward_stderr") continue;
    ASSERT_TRUE(key.starts_with("eval_") && found[1].contains(key.substr(5))) << key;
    EXPECT_EQ(value, found[1][key.substr(5)]) << key;
    ++compared;
  }
  EXPECT_EQ(compared, 13) << found[0];
  EXPECT_GT(found[0]["eval_reward_stderr"], 0);
  EXPECT_NE(found[3]["eval_reward"], found[0]["eval_reward"]);
  EXPECT_NE(said_.text().find("step 0 eval_reward"), std::string::npos);
  // Training is the same to the bit, and the plan knows what is done.
  run("without", job);
  EXPECT_EQ(adapter("with"), adapter("without"));
  const Json planned = json("with/plan.json");
  EXPECT_EQ(json("with/measured.json")["device"]["peak_bytes"], planned["device"]["peak_bytes"]);
  EXPECT_NEAR(planned["evaluation"]["answers_seconds"].get<double>(),
              planned["rollouts"]["seconds"].get<double>(), 1e-9);
  EXPECT_GT(json("with/measured.json")["evaluation"]["answers_seconds"], 0);
}

// One prompt is longer than all that are learned from, and one set is in need of two generations.
TEST_F(AnswerRuns, SetsAreEvaluatedByThemselves) {
  folder_.write("long.jsonl",
                "{\"prompt\": \"Name the longest of them, and all that flow into it.\"}\n");
  folder_.write("sets.yaml", "eval_data:\n  one: " + path("long.jsonl").string() +
                                 "\n  all: " + path("data.jsonl").string() + "\n");
  formats::Recipe sets = recipe("sets",
                                "max_steps=3 eval_steps=1 save_steps=1 save_total_limit=3 "
                                "load_best_model_at_end=true eval_data=" +
                                    path("long.jsonl").string());
  sets.eval_data = formats::load_recipe(path("sets.yaml").string(), {}).eval_data;
  ASSERT_EQ(train(sets), 0);
  double best = 0;
  std::string best_step;
  for (const Json& line : metrics("sets")) {
    if (!line.contains("eval_reward")) continue;
    const double one = line["eval_one_reward"];
    const double all = line["eval_all_reward"];
    EXPECT_NEAR(line["eval_reward"].get<double>(), (one + 4 * all) / 5, 1e-12) << "of five prompts";
    EXPECT_TRUE(line.contains("eval_all_rewards/length/mean")) << line;
    EXPECT_FALSE(line.contains("eval_loss") || line.contains("eval_one_reward_stderr"));
    if (line["eval_reward"] > best) {
      best = line["eval_reward"];
      best_step = std::to_string(line["step"].get<int64_t>());
    }
  }
  EXPECT_EQ(adapter("sets"), base::read_text_file(path("sets/checkpoint-" + best_step) /
                                                  "adapter_model.safetensors"))
      << "the greatest reward is the best";
  const Json planned = json("sets/plan.json");
  EXPECT_EQ(json("sets/measured.json")["device"]["peak_bytes"], planned["device"]["peak_bytes"]);
  EXPECT_EQ(planned["rollouts"]["prompt_tokens"], 25);
}

// Within a generation, too.
TEST_F(AnswerRuns, ARunThatGoesOnEvaluatesAlike) {
  const std::string job = std::string(" val_set_size=2 eval_steps=1") + kFourUpdates;
  run("whole", "max_steps=3" + job);
  run("part", "max_steps=2" + job);
  run("part", "max_steps=3 resume_from_checkpoint=auto" + job);
  const auto evaluations = [&](const std::string& name) {
    std::vector<Json> all = metrics(name);
    std::erase_if(all, [](const Json& line) { return !line.contains("eval_reward"); });
    return all;
  };
  EXPECT_EQ(evaluations("part"), evaluations("whole"));
  EXPECT_EQ(evaluations("whole").size(), 3);
  EXPECT_EQ(adapter("part"), adapter("whole"));
  EXPECT_EQ(json("whole/measured.json")["data"][1]["records"], 2);
}

// No entropy is above the bound, and the model moves from where it began with the second update on.
TEST_F(AnswerRuns, GuardsSayWhatIsWrongAndThenStop) {
  const std::string error = failure_of("max_steps=21 min_entropy=100 max_kl=1e-12 beta=0.001");
  EXPECT_TRUE(error.starts_with("step 20: the entropy of the answers' tokens was below")) << error;
  const std::string said = said_.text();
  EXPECT_NE(said.find("warning: step 5: the entropy"), std::string::npos) << said;
  EXPECT_NE(said.find("warning: step 6: the model was further than max_kl=1e-12"),
            std::string::npos);
  EXPECT_EQ(metrics("refused").size(), 19);
}

// As many as the share says, of each micro-batch, or a few more.
TEST_F(AnswerRuns, OnlyTokensOfDoubtCanBeLearned) {
  run("some", "max_steps=2 top_entropy_quantile=0.25");
  for (const Json& line : metrics("some")) {
    const double tokens = 8 * line["completions/mean_length"].get<double>();
    EXPECT_NEAR(line["trained_tokens"].get<double>(), tokens / 4, 1 + tokens / 50);
    EXPECT_GT(line["entropy"], 5) << "a random model of 258 tokens is hardly certain";
    EXPECT_LT(line["entropy"], 5.553);
  }
}

TEST_F(AnswerRuns, AllWeightsAndFourBitsLearnToo) {
  for (const char* how : {"method=full", "method=qlora", "method=lora loss_type=dr_grpo",
                          "importance_sampling_level=sequence advantage=rloo loss_type=bnpo"})
    run("other", std::string(how) + " max_steps=2 overwrite_output_dir=true");
}

TEST_F(AnswerRuns, RefusalsSayWhatToDo) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"rewards=", "rewards"},
      {"num_generations=3", "per_device_train_batch_size=9"},
      {"steps_per_generation=3 gradient_accumulation_steps=2", "give a multiple"},
      {"loss_type=hinge", "objective=grpo has grpo, bnpo, dr_grpo, dapo"},
      {"temperature=0", "all answers to a prompt would be the same"},
      {"max_length=8", "leaves none for a prompt"},
      {"max_completion_length=256", "leaves no token for a prompt"},
      {"method=full beta=0.1", "leave beta out"},
      {"top_entropy_quantile=0.2 beta=0.1", "leave one of them out"},
      {"delta=1.1", "above 1 + epsilon_high"},
      {"max_new_tokens=5", "max_completion_length"},
      {"val_set_size=0.5 eval_generate=2", "each evaluation asks all of it"},
      {"eval_metrics=number", "evaluations take rewards"},
      {"val_set_size=2 load_best_model_at_end=true metric_for_best_model=loss",
       "they give eval_reward, eval_rewards/length/mean"},
      {"max_segments=4", "leave it out"},
      {"train_on_prompt=true", "all that the model answers is learned"},
      {"truncation=keep_end", "prompts that are too long are left out"},
      {"objective=dpo", "is for models with an encoder"},
      {"optim_in_backward=true max_grad_norm=0", "leave it out"},
      {"max_kl=0.1", "give a small beta"},
      {"max_kl=0.1 beta=0.1 guards=no_high_kl", "which guards leaves out"},
      {"guards=high_kl,not_finite", "give max_kl too"}};
  for (const auto& [words, said] : cases)
    EXPECT_NE(failure_of(words).find(said), std::string::npos)
        << words << ": " << failure_of(words);
}

}  // namespace
}  // namespace snug::train
