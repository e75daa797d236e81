// max_length=auto against every length that a step can be divided into.
#include "plan/choice/choose_length.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "backends/cuda/device/planned_card.h"
#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "plan/choice/change.h"
#include "plan/choice/choose_rows.h"
#include "plan/choice/fit.h"
#include "plan/job/rank_grid.h"
#include "train/data.h"

namespace snug::train {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;
using formats::Recipe;
using Words = std::vector<std::string>;

constexpr int64_t kLongest = 700;

PlannedCard card_of(int64_t megabytes) { return {*find_hardware("h100"), megabytes << 20}; }

struct Planned {
  int64_t tokens = 0;  // of a row
  int64_t rows = 0;
  int64_t steps = 0;
  double rate = 0;  // tokens of documents a second; 0: it does not fit
};

// One document of kLongest tokens and many of which one alone lies in a row of as many.
class ChooseLength : public ::testing::Test {
 protected:
  ChooseLength() {
    std::string lines = record(kLongest);
    for (int i = 0; i < 90; ++i) lines += record(360 + 7 * (i % 5));
    folder_.write("data.jsonl", lines);
  }

  static std::string record(int64_t tokens) {
    std::string ids = "5";
    for (int64_t i = 1; i < tokens; ++i) ids += fmt::format(",{}", 2 + i % 40);
    return fmt::format("{{\"input_ids\": [{}]}}\n", ids);
  }

  // Of words for one key the last counts.
  Recipe recipe_of(const std::string& more) const {
    Words words{"model=smollm2-360m", "method=lora",
                "data=" + (folder_.path() / "data.jsonl").string()};
    std::istringstream stream(more);
    for (std::string word; stream >> word;) {
      const std::string key = word.substr(0, word.find('=') + 1);
      std::erase_if(words, [&](const std::string& each) { return each.starts_with(key); });
      words.push_back(word);
    }
    return formats::load_recipe("", words);
  }

  static RunData data_of(const Recipe& recipe, const models::ModelSource& model,
                         const program::Target& target) {
    return load_data(recipe, model, target);
  }

  static Planned planned(const Recipe& recipe, const program::Target& target) {
    const models::ModelSource model = models::find_model(recipe.model);
    const RunData data = data_of(recipe, model, target);
    text::RowSource& rows = data.training->rows;
    const plan::PlanDocument document =
        plan::assemble_training({recipe, model, target, data.facts()}).document;
    const double tokens = static_cast<double>(data.training->dataset.documents.tokens()) /
                          static_cast<double>(rows.rows_until(1));
    Planned result{recipe.max_length, recipe.per_device_train_batch_size,
                   recipe.gradient_accumulation_steps};
    if (plan::fits(recipe, document, target))
      result.rate =
          tokens * static_cast<double>(result.rows * result.steps) / document.step_seconds;
    return result;
  }

  static Recipe with_best_length(const plan::TrainingInputs& inputs, RunData& data) {
    const int64_t times = best_times(inputs, data);
    return plan::with_length(inputs.recipe, data.documents.shortest_rows(), times);
  }

  Planned chosen(const std::string& words, const program::Target& target) const {
    const Recipe open = recipe_of(words + " max_length=auto");
    const models::ModelSource model = models::find_model(open.model);
    RunData data = data_of(open, model, target);
    const Recipe recipe = with_best_length({open, model, target}, data);
    return planned(
        plan::with_chosen_rows({recipe, model, target, data_of(recipe, model, target).facts()}),
        target);
  }

  Planned given(int64_t tokens, int64_t rows, int64_t steps, const program::Target& target) const {
    return planned(recipe_of(fmt::format("max_length={} per_device_train_batch_size={} "
                                         "gradient_accumulation_steps={}",
                                         tokens, rows, steps)),
                   target);
  }

  std::string error_of(const std::string& words, const program::Target& target) const {
    try {
      chosen(words, target);
    } catch (const base::UserError& error) {
      EXPECT_EQ(error.exit_code(), plan::kDoesNotFitExitCode);
      return error.what();
    }
    return "";
  }

  testing::TemporaryFolder folder_;
};

// Of rows that are nearly full longer ones are not tried.
constexpr double kNearly = 0.99;

TEST_F(ChooseLength, TakesMostTokensASecondOfAllThatFit) {
  std::set<int64_t> found;
  for (const int64_t megabytes : {1020, 40000}) {
    SCOPED_TRACE(megabytes);
    const PlannedCard card = card_of(megabytes);
    const Planned best =
        chosen("per_device_train_batch_size=auto gradient_accumulation_steps=4", card);
    EXPECT_GT(best.rate, 0);
    EXPECT_EQ(best.tokens * best.rows * best.steps, 4 * kLongest);
    for (const int64_t times : plan::micro_batches(4))
      for (const int64_t rows : plan::micro_batches(4 / times)) {
        const Planned other = given(times * kLongest, rows, 4 / times / rows, card);
        EXPECT_GE(best.rate, kNearly * other.rate) << times << " times, " << rows << " rows";
      }
    found.insert(best.tokens);
  }
  EXPECT_GT(found.size(), 1U);
}

TEST_F(ChooseLength, KeepsTheRowsOfAMicroBatchThatAreGiven) {
  std::set<int64_t> found;
  for (const int64_t megabytes : {1200, 40000}) {
    SCOPED_TRACE(megabytes);
    const PlannedCard card = card_of(megabytes);
    const Planned best =
        chosen("per_device_train_batch_size=2 gradient_accumulation_steps=4", card);
    EXPECT_GT(best.rate, 0);
    EXPECT_EQ(best.rows, 2);
    EXPECT_EQ(best.tokens * best.steps, 4 * kLongest);
    for (const int64_t times : plan::micro_batches(4))
      EXPECT_GE(best.rate, given(times * kLongest, 2, 4 / times, card).rate) << times;
    found.insert(best.tokens);
  }
  EXPECT_GT(found.size(), 1U);
}

TEST_F(ChooseLength, IsTheLongestDocumentWhereRowsHoldOne) {
  const PlannedCard card = card_of(40000);
  for (const char* one : {"packing=false", "max_segments=1"}) {
    const Planned best = chosen(fmt::format("{} gradient_accumulation_steps=4", one), card);
    EXPECT_EQ(best.tokens, kLongest) << one;
    EXPECT_EQ(best.steps, 4) << one;
  }
}

TEST_F(ChooseLength, RefusesWhatWouldBeCutAndNamesTheLongestThatFits) {
  const PlannedCard card = card_of(1000);
  const std::string error = error_of("gradient_accumulation_steps=2", card);
  const auto at = error.find("the longest that fits is max_length=");
  ASSERT_NE(at, std::string::npos) << error;
  const int64_t longest = std::stoll(error.substr(error.find('=', at) + 1));
  EXPECT_GT(given(longest, 1, 2, card).rate, 0);
  EXPECT_EQ(given(longest + 1, 1, 2, card).rate, 0);
  int64_t cut = kLongest > longest ? 1 : 0;
  for (int i = 0; i < 90; ++i) cut += 360 + 7 * (i % 5) > longest ? 1 : 0;
  EXPECT_NE(error.find(fmt::format("cuts {} of the 91 documents", cut)), std::string::npos)
      << error;
}

// The answer of one document begins at token 601: shorter rows would leave nothing of it, so that
// the job would be refused.
class LateAnswer : public ChooseLength {
 protected:
  static constexpr int64_t kBegins = 601;

  LateAnswer() {
    std::string labels = "-100";
    for (int64_t i = 1; i < kLongest; ++i)
      labels += i + 1 < kBegins ? std::string(",-100") : fmt::format(",{}", 2 + i % 40);
    std::string line = record(kLongest);
    line.insert(line.rfind('}'), fmt::format(", \"labels\": [{}]", labels));
    folder_.write("data.jsonl", line + record(300));
  }
};

TEST_F(LateAnswer, IsNotCutAwayByAuto) {
  for (const int64_t megabytes : {600, 700, 800, 900, 1000}) {
    const std::string error = error_of("gradient_accumulation_steps=2", card_of(megabytes));
    if (error.empty()) continue;
    const auto at = error.find("the longest that fits is max_length=");
    if (at == std::string::npos)
      EXPECT_NE(error.find("leave something of each answer, which takes 601 tokens"),
                std::string::npos)
          << error;
    else
      EXPECT_GE(std::stoll(error.substr(error.find('=', at) + 1)), kBegins) << error;
  }
}

TEST_F(LateAnswer, IsNotCutAwayByTheChangeThatARefusalNames) {
  const models::ModelSource model = models::find_model("smollm2-360m");
  int64_t refused = 0;
  for (const int64_t megabytes : {450, 500, 550, 600, 800}) {
    const PlannedCard card = card_of(megabytes);
    const Recipe recipe = recipe_of("max_length=2048 recompute=none host_memory=2GiB");
    const RunData data = data_of(recipe, model, card);
    const plan::Verdict verdict =
        plan::assemble_training({recipe, model, card, data.facts()}).verdict();
    if (verdict.fits) continue;
    ++refused;
    if (verdict.change.empty()) continue;
    const Recipe changed =
        recipe_of("max_length=2048 recompute=none host_memory=2GiB " + verdict.change);
    EXPECT_GE(changed.max_length, kBegins) << verdict.message;
    EXPECT_NO_THROW(data_of(changed, model, card)) << verdict.change;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(ChooseLength, SaysSoWhereNoLengthFits) {
  const std::string error = error_of("per_device_train_batch_size=2", card_of(100));
  EXPECT_NE(error.find("a micro-batch of 2 rows of 700 tokens"), std::string::npos) << error;
  EXPECT_NE(error.find("no shorter rows fit either"), std::string::npos) << error;
}

// Prompts and answers are as many times as long as the longest of each.
TEST_F(ChooseLength, OfTwoStreamsHasBoth) {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    const std::string prompt = record(i == 0 ? 300 : 150);
    lines += prompt.substr(0, prompt.size() - 2) + ", \"labels\": [" +
             (i == 7 ? "4, 5, 6, 7, 8, 9, 1" : "4, 5, 1") + "]}\n";
  }
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("pairs.jsonl", lines).string();
  const Recipe open = formats::load_recipe(
      "", Words{"model=flan-t5-small", "method=lora", "data=" + path, "max_length=auto",
                "gradient_accumulation_steps=4", "per_device_train_batch_size=auto"});
  const models::ModelSource model = models::find_model(open.model);
  const auto chosen_on = [&](const PlannedCard& card) {
    RunData data = load_data(open, model, card);
    EXPECT_EQ(data.documents.shortest_rows(), (base::PerStream<int64_t>{7, 300}));
    return with_best_length({open, model, card}, data);
  };
  const Recipe chosen = chosen_on(card_of(40000));
  EXPECT_EQ(chosen.max_length % 300, 0);
  EXPECT_EQ(chosen.max_target_length, chosen.max_length / 300 * 7);
  EXPECT_EQ(chosen.gradient_accumulation_steps * chosen.max_length, 4 * 300);
  try {
    chosen_on(card_of(100));
    ADD_FAILURE() << "fits";
  } catch (const base::UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("300 tokens of prompts and 7 of answers"), std::string::npos) << text;
    EXPECT_NE(text.find("max_length=300 max_target_length=7 says"), std::string::npos) << text;
  }
}

// So that what was written as numbers is the job that was planned.
TEST_F(ChooseLength, DividesAllThatCountsRowsOfAStep) {
  const Recipe recipe = plan::with_length(
      recipe_of("per_device_train_batch_size=2 gradient_accumulation_steps=6 train_batch_size=12 "
                "max_length=auto"),
      kLongest, 3);
  EXPECT_EQ(recipe.max_length, 3 * kLongest);
  EXPECT_EQ(recipe.gradient_accumulation_steps, 2);
  EXPECT_NO_THROW(plan::check_step_rows(recipe));
}

}  // namespace
}  // namespace snug::train
