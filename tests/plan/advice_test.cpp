// The change that a refusal names, applied as a user would: its words after those of before.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cuda/device/planned_card.h"
#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "plan/time/clock.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;

using Words = std::vector<std::string>;

struct Judged {
  PlanDocument document;
  Verdict verdict;
};

Judged judged(const Words& words, const program::Target& target,
              const JobDocuments& documents = {}) {
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  TrainingInputs inputs{recipe, model, target};
  if (documents.size() > 0)
    inputs.data = DataFacts{documents, program::full_rows(recipe.max_length)};
  const PlannedTraining planned = assemble_training(inputs);
  return {planned.document, planned.verdict()};
}

// One document, which fills a row of any length up to its own.
JobDocuments documents_of(int32_t tokens) {
  JobDocuments documents;
  documents.files.emplace_back().add(tokens);
  return documents;
}

// With the words of the change in the place of those of the same keys.
Words applied(Words words, const std::string& change) {
  std::istringstream stream(change);
  for (std::string word; stream >> word;) {
    const std::string key = word.substr(0, word.find('=') + 1);
    std::erase_if(words, [&](const std::string& each) { return each.starts_with(key); });
    words.push_back(word);
  }
  return words;
}

void expect_change_fits(const Words& words, const program::Target& target,
                        const JobDocuments& documents = {}) {
  const Judged before = judged(words, target, documents);
  ASSERT_FALSE(before.verdict.fits);
  ASSERT_NE(before.verdict.change, "") << before.verdict.message;
  const Judged after = judged(applied(words, before.verdict.change), target, documents);
  EXPECT_TRUE(after.verdict.fits) << before.verdict.change << ": " << after.verdict.message;
}

// Long documents make attention the library's, which takes other memory than short ones do: what is
// planned without data fits where the job does not.
TEST(Advice, IsThatOfTheDataThatWasPlannedWith) {
  const JobDocuments long_documents = documents_of(32768);
  for (const char* recompute : {"recompute=layer", "recompute=none"}) {
    const Words words{"model=qwen3-0.6b", "max_length=32768", recompute, "host_memory=3GiB"};
    const PlannedCard roomy(*find_hardware("h100"), 0);
    const int64_t with = judged(words, roomy, long_documents).document.device.report.peak_bytes;
    const int64_t without = judged(words, roomy).document.device.report.peak_bytes;
    ASSERT_NE(without, with);
    for (const int64_t budget : {with - 1, with - 50'000'000, std::min(with - 1, without)})
      expect_change_fits(words, PlannedCard(*find_hardware("h100"), budget), long_documents);
  }
}

// Data whose answers begin late refuse short rows: none of those is named, and the change is one
// that the data take.
TEST(Advice, NamesNoRowsThatTheDataRefuse) {
  constexpr int64_t kMinTokens = 3000;
  JobDocuments late_answers = documents_of(8192);
  late_answers.least = kMinTokens;
  const Words words{"model=smollm2-135m", "method=full", "max_length=8192", "host_memory=2GiB"};
  int64_t refused = 0;
  int64_t with_shorter_rows = 0;
  for (const int64_t megabytes : {400, 1200, 1800, 2400}) {
    const PlannedCard card(*find_hardware("h100"), megabytes << 20);
    const Verdict verdict = judged(words, card, late_answers).verdict;
    if (verdict.fits) continue;
    ++refused;
    if (verdict.change.empty()) continue;
    const size_t at = verdict.change.find("max_length=");
    if (at == std::string::npos) continue;
    ++with_shorter_rows;
    EXPECT_GE(std::stoll(verdict.change.substr(at + 11)), kMinTokens) << verdict.change;
    expect_change_fits(words, card, late_answers);
  }
  EXPECT_GT(refused, 0);
  EXPECT_LE(with_shorter_rows, refused);
}

// Shorter rows would leave prompts out of what is learned, so answers are made shorter.
TEST(Advice, LeavesRoomForPrompts) {
  const Words words{"model=examples/wordnet", "method=lora",     "objective=grpo",
                    "rewards=exact",          "beta=0",          "per_device_train_batch_size=8",
                    "max_length=512",         "recompute=layer", "max_completion_length=448"};
  const PlannedCard card(*find_hardware("h100"), 40 << 20);
  const std::string change = " " + judged(words, card).verdict.change;
  const auto number = [&](const std::string& key) {
    const size_t at = change.find(" " + key + "=");
    return at == std::string::npos ? 0 : std::stoll(change.substr(at + key.size() + 2));
  };
  EXPECT_GT(number("max_length"), 0) << change;
  EXPECT_EQ(number("max_length") - number("max_completion_length"), 512 - 448) << change;
  EXPECT_TRUE(judged(applied(words, change), card).verdict.fits) << change;
}

TEST(Advice, TakesBackWhatTheRecipeSaysAgainstIt) {
  const PlannedCard small(*find_hardware("rtx-3090"), 12'000'000'000);
  Words words{"model=llama-3.1-8b", "load_in_4bit=false", "method=lora", "max_length=4096",
              "max_segments=1"};
  // The same numbers come first, where the host has room for the weights.
  EXPECT_EQ(judged(words, small).verdict.change, "activation_offloading=true offload_params=true");
  expect_change_fits(words, small);
  words.push_back("recompute=none");
  EXPECT_EQ(judged(words, small).verdict.change,
            "recompute=layer activation_offloading=true offload_params=true");
  expect_change_fits(words, small);
  words.push_back("host_memory=8GiB");
  EXPECT_NE(judged(words, small).verdict.change.find("method=qlora load_in_4bit=true"),
            std::string::npos);
  expect_change_fits(words, small);
}

// Full fine-tuning of a model of which not even the weights have room.
TEST(Advice, StreamsWhatTheCardDoesNotHold) {
  const PlannedCard card(*find_hardware("rtx-4090"), 0);
  const Words words{"model=llama-3.1-8b", "method=full", "max_length=4096", "recompute=none",
                    "host_memory=160GiB"};
  EXPECT_EQ(judged(words, card).verdict.change,
            "recompute=layer activation_offloading=true offload_params=true "
            "offload_optimizer=auto");
  expect_change_fits(words, card);
}

// What an adapter keeps for its optimizer counts too, and the scales of its base.
TEST(Advice, NamesOtherTypesBeforeOtherAdapters) {
  const PlannedCard small(*find_hardware("rtx-4090"), int64_t{12} << 30);
  const Words wide{"model=llama-3.1-8b", "method=qlora", "lora_r=256", "max_length=512",
                   "host_memory=3GiB"};
  EXPECT_NE(judged(wide, small).verdict.change.find("optim=adamw_"), std::string::npos);
  EXPECT_EQ(judged(wide, small).verdict.change.find("lora_r"), std::string::npos);
  expect_change_fits(wide, small);

  const PlannedCard smaller(*find_hardware("rtx-4090"), int64_t{7} << 30);
  const Words plain{"model=llama-2-13b", "method=qlora", "double_quant=false", "max_length=512",
                    "host_memory=3GiB"};
  EXPECT_NE(judged(plain, smaller).verdict.change.find("double_quant=true"), std::string::npos);
  expect_change_fits(plain, smaller);
}

// Which answers KTO's estimate pairs follows from the micro-batch.
TEST(Advice, LeavesTheRowsOfLabelledAnswers) {
  Words words{"model=llama-3.1-8b",
              "method=lora",
              "objective=kto",
              "max_length=2048",
              "per_device_train_batch_size=8",
              "packing=false",
              "recompute=none"};
  const PlannedCard small(*find_hardware("h100"), 40'000'000'000);
  const std::string change = judged(words, small).verdict.change;
  EXPECT_EQ(change.find("per_device_train_batch_size"), std::string::npos) << change;
  expect_change_fits(words, small);
}

TEST(Advice, ForTooLittleHostMemoryIsNotAboutTheDevice) {
  const PlannedCard card(*find_hardware("h100"), 0);
  const Verdict verdict = judged({"model=smollm2-135m", "host_memory=1MB"}, card).verdict;
  EXPECT_EQ(verdict.key, "host_memory");
  const std::string& message = verdict.message;
  EXPECT_NE(message.find("and host_memory is 1000000 bytes"), std::string::npos) << message;
  const size_t advice =
      message.find("No change that snug knows makes it fit: raise host_memory to ");
  ASSERT_NE(advice, std::string::npos) << message;
  const std::string amount = message.substr(message.rfind(' ') + 1);
  EXPECT_TRUE(
      judged({"model=smollm2-135m", "host_memory=" + amount.substr(0, amount.size() - 1)}, card)
          .verdict.fits)
      << amount;
}

}  // namespace
}  // namespace snug::plan
