// plan.json and measured.json: the keys that others read, and the tables for people.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "null_target.h"
#include "plan/document/measured.h"
#include "plan/job/assembly.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

PlanDocument document_of(const std::vector<std::string>& words) {
  const NullTarget target(int64_t{80} << 30);
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  return assemble_training({recipe, model, target}).document;
}

const std::vector<std::string> kWords{"model=smollm2-135m",
                                      "method=lora",
                                      "max_length=512",
                                      "per_device_train_batch_size=2",
                                      "gradient_accumulation_steps=3",
                                      "host_memory=1GiB"};

TEST(Document, HasTheKeysThatAreRead) {
  const auto json = nlohmann::json::parse(to_json(document_of(kWords)));
  for (const char* pointer : {"/fits",
                              "/change",
                              "/model",
                              "/method",
                              "/compute_dtype",
                              "/recompute",
                              "/activation_offloading",
                              "/offload_params",
                              "/offload_optimizer",
                              "/offload_window_bytes",
                              "/micro_batch/of_data",
                              "/device/capacity_bytes",
                              "/device/peak_bytes",
                              "/device/lower_bound_bytes",
                              "/device/by_role/weight",
                              "/device/by_layer",
                              "/device/peak/program",
                              "/device/peak/index",
                              "/device/peak/operation",
                              "/host/peak_bytes",
                              "/host/by_role",
                              "/outside/bytes",
                              "/outside/process_bytes",
                              "/outside/basis",
                              "/resident/peak_bytes",
                              "/parameters/total",
                              "/parameters/trainable",
                              "/tokens_per_step",
                              "/step_seconds",
                              "/step_basis",
                              "/step_other_algorithm_seconds",
                              "/step_unsampled_seconds",
                              "/load_seconds",
                              "/load_basis",
                              "/save_seconds",
                              "/save_basis",
                              "/tokens_per_second",
                              "/workspaces",
                              "/target",
                              "/libraries",
                              "/threads"})
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(pointer))) << pointer;
  EXPECT_EQ(json["tokens_per_step"], 512 * 2 * 3);
  EXPECT_EQ(json["micro_batch"]["rows"], 2);
  EXPECT_EQ(json["micro_batch"]["row_tokens"], 512);
  EXPECT_EQ(json["micro_batch"]["row_documents"], 512 / 16);
  EXPECT_EQ(json["model"], "smollm2-135m");
  EXPECT_EQ(json["method"], "lora");
  EXPECT_EQ(json["compute_dtype"], "bf16");
  EXPECT_EQ(json["recompute"], "auto");
  EXPECT_EQ(json["recompute_layers"].dump(), R"([{"layers":30,"mode":"keep_all"}])");
  EXPECT_EQ(json["recompute_nothing_bytes"], json["device"]["peak_bytes"]);
  EXPECT_EQ(json["host"]["capacity_bytes"], int64_t{1} << 30);
  EXPECT_EQ(json["device"]["capacity_bytes"], int64_t{80} << 30);
  EXPECT_EQ(json["parameters"]["total"],
            134515008 + json["parameters"]["trainable"].get<int64_t>());
}

TEST(Document, RolesAddUpToTheLowerBoundOrLess) {
  const PlanDocument document = document_of(kWords);
  int64_t sum = 0;
  for (const auto& [role, bytes] : document.device.report.by_role) sum += bytes;
  EXPECT_LE(sum, document.device.report.lower_bound_bytes);
  EXPECT_GT(sum, document.device.report.lower_bound_bytes * 99 / 100);
}

TEST(Document, SummarySaysWhatIsComputedAgainAndWhy) {
  PlanDocument document = document_of(kWords);
  EXPECT_NE(summary(document).find("recompute    keep_all in 30 layers: there is room for "
                                   "everything that the backward pass reads"),
            std::string::npos)
      << summary(document);
  document.recompute_layers = {{"layer", 10}, {"none", 20}};
  document.recompute_nothing_bytes = int64_t{100} << 30;
  EXPECT_NE(summary(document).find("recompute    layer in 10 layers, then none in 20 layers: the "
                                   "fastest that fits; to compute nothing again takes 100.00 GiB"),
            std::string::npos)
      << summary(document);
  document.fits = false;
  EXPECT_NE(summary(document).find(": what takes the least; to compute"), std::string::npos);
  // Nothing was chosen where the recipe says it.
  auto words = kWords;
  words.emplace_back("recompute=layer");
  EXPECT_EQ(summary(document_of(words)).find("recompute    "), std::string::npos);
}

TEST(Document, SummaryShowsWhatMatters) {
  PlanDocument document = document_of(kWords);
  document.outside_bytes = 50 << 20;
  document.outside_basis = Basis::measured;
  document.step_seconds = 2.0;
  document.step_basis = Basis::calibrated;
  document.step_unsampled_seconds = 0;
  document.load_seconds = 3.0;
  const std::string text = summary(document);
  for (const char* part :
       {"smollm2-135m lora", "80.00 GiB", "weight", "activation", "peak in ", "lower bound",
        "50.0 MiB (measured)", "2.00 s (calibrated)", "up to 3072 tokens, 1536 tokens/s",
        "2 x 512 tokens, room for 32 documents in each (no data",
        "loading      3.00 s (at assumed rates)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  document.has_data = true;
  EXPECT_EQ(summary(document).find("no data"), std::string::npos);
  document.step_unsampled_seconds = 0.9;
  document.step_other_algorithm_seconds = 0.1;
  EXPECT_NE(summary(document).find("2.00 s (calibrated; 45 % of the time without a sample; 5 % by "
                                   "samples of another algorithm)"),
            std::string::npos)
      << summary(document);
}

// Of passes over data that were not read nobody knows how long they take.
TEST(Document, SummarySaysWhatARunTakesBesidesItsSteps) {
  PlanDocument document = document_of(kWords);
  EXPECT_EQ(summary(document).find("evaluation"), std::string::npos);
  document.step_basis = Basis::calibrated;
  document.reference = PassFigures{.runs = 120, .run_seconds = 0.25, .first_seconds = 1.0};
  document.evaluation = PassFigures{.run_seconds = 0.25};
  document.save_seconds = 3.0;
  document.save_basis = Basis::assumed;
  const std::string text = summary(document);
  for (const char* part :
       {"reference    31.00 s (calibrated): 120 runs of 250.0 ms, before the first step",
        "evaluation   unknown: 250.0 ms (calibrated) a run, and no data say how many there are",
        "saving       3.00 s for a checkpoint, at the rate of files (assumed)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  const auto json = nlohmann::json::parse(to_json(document));
  EXPECT_EQ(json["reference"]["seconds"], 31.0);
  EXPECT_EQ(json["reference"]["runs"], 120);
  EXPECT_TRUE(json["evaluation"]["seconds"].is_null());
  Measured measured;
  EXPECT_NE(comparison(document, measured).find("\nreference              31.00 s       unknown"),
            std::string::npos)
      << comparison(document, measured);
  measured.reference_seconds = 62.0;
  EXPECT_NE(comparison(document, measured)
                .find("\nreference              31.00 s       62.00 s     2.000"),
            std::string::npos)
      << comparison(document, measured);
}

// The process is as large as the larger of what comes before the job and the job.
TEST(Document, ReadingDataCountsWhereItIsMore) {
  PlanDocument document = document_of(kWords);
  document.outside_bytes = 50 << 20;
  const int64_t job = document.arena_bytes_on_host() + document.outside_bytes;
  EXPECT_EQ(document.resident_bytes(), job);
  EXPECT_EQ(summary(document).find("reading"), std::string::npos);
  document.reading_bytes = 100 << 20;
  EXPECT_EQ(document.resident_bytes(), job);
  EXPECT_NE(summary(document).find("reading         100.0 MiB at most"), std::string::npos);
  document.reading_bytes = job + 1;
  EXPECT_EQ(document.resident_bytes(), job + 1);
  EXPECT_EQ(nlohmann::json::parse(to_json(document))["reading"]["peak_bytes"], job + 1);
}

// What the process has held is measured: it changes the peak and no planned figure.
TEST(Document, WhatWasHeldBeforeStandsNextToWhatReadingWasPlannedToTake) {
  const formats::Recipe recipe = formats::load_recipe("", kWords);
  const models::ModelSource model = models::find_model(recipe.model);
  const NullTarget target(int64_t{80} << 30);
  TrainingInputs inputs{recipe, model, target};
  inputs.data =
      DataFacts{.documents = {}, .expected = program::full_rows(512), .reading_bytes = 7 << 20};
  const int64_t held = int64_t{9} << 30;
  const PlanDocument document = assemble_training(inputs, [&](const Job&) {
                                  return ProcessBytes{50 << 20, held};
                                }).document;
  EXPECT_EQ(document.reading_bytes, 7 << 20);
  EXPECT_EQ(document.held_bytes, held);
  EXPECT_EQ(document.resident_bytes(), held);
  const auto json = nlohmann::json::parse(to_json(document));
  EXPECT_EQ(json["reading"]["peak_bytes"], 7 << 20);
  EXPECT_EQ(json["reading"]["held_bytes"], held);
  EXPECT_NE(summary(document).find("held so far      9.00 GiB at most (measured)"),
            std::string::npos)
      << summary(document);
  Measured measured;
  measured.reading_bytes = held;
  EXPECT_NE(comparison(document, measured).find("7.0 MiB      9.00 GiB"), std::string::npos)
      << comparison(document, measured);
}

// In each space the most of all activities is the arena.
void expect_activities(const PlannedTraining& planned, int64_t alignment) {
  const MemoryReport memory = read_memory(planned.job);
  for (size_t s = 0; s < memory.spaces.size(); ++s) {
    int64_t most = 0;
    for (const ActivityReport& report : memory.activities) most = std::max(most, report.bytes[s]);
    EXPECT_LE(most, memory.spaces[s].peak_bytes) << "space " << s;
    EXPECT_GE(most + alignment, memory.spaces[s].peak_bytes) << "space " << s;
  }
  const PlanDocument& document = planned.document;
  for (const PlanDocument::ActivityFigures& figures : document.activities) {
    EXPECT_GT(figures.arena_bytes, 0) << base::word_of(figures.activity);
    EXPECT_LE(figures.arena_bytes, document.arena_bytes_on_host());
  }
}

int64_t bytes_of(const PlanDocument& document, Activity activity) {
  const auto found =
      std::ranges::find(document.activities, activity, &PlanDocument::ActivityFigures::activity);
  return found == document.activities.end() ? -1 : document.activity_bytes(*found);
}

TEST(Document, RanksHaveTheirActivities) {
  std::vector<std::string> words = kWords;
  for (const char* word : {"devices=4", "strategy=full_shard", "eval_data=some.jsonl"})
    words.emplace_back(word);
  const NullTarget target(int64_t{80} << 30);
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  const PlannedTraining planned = assemble_training({recipe, model, target});
  expect_activities(planned, target.alignment_bytes());
  PlanDocument document = planned.document;
  document.outside_bytes = 50 << 20;
  document.reading_bytes = 70 << 20;
  ASSERT_EQ(document.activities.size(), 4U);
  EXPECT_GT(bytes_of(document, Activity::training), bytes_of(document, Activity::evaluating));
  const auto json = nlohmann::json::parse(to_json(document));
  for (const char* activity : {"reading", "loading", "training", "evaluating", "saving"}) {
    const auto of_rank = json["resident"]["activities"][activity].get<int64_t>();
    EXPECT_GT(of_rank, 50 << 20) << activity;
    EXPECT_EQ(json["ranks"]["node"]["activities"][activity].get<int64_t>(), 4 * of_rank)
        << activity;
    EXPECT_NE(
        summary(document).find(fmt::format("\n    {:<12} {:>12} {:>12}\n", activity,
                                           readable_bytes(of_rank), readable_bytes(4 * of_rank))),
        std::string::npos)
        << activity << " is not in\n"
        << summary(document);
  }
  words.pop_back();
  EXPECT_EQ(bytes_of(document_of(words), Activity::evaluating), -1) << "there is no such program";
}

// Next to a card the host holds what passes through it: while it loads, more than while it trains.
TEST(Document, ActivitiesNextToACardAreOfTheHost) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("rtx-4090"), 0);
  const formats::Recipe recipe = formats::load_recipe("", kWords);
  const models::ModelSource model = models::find_model(recipe.model);
  const PlannedTraining planned = assemble_training({recipe, model, card});
  expect_activities(planned, card.alignment_bytes());
  const PlanDocument& document = planned.document;
  EXPECT_GT(bytes_of(document, Activity::loading), bytes_of(document, Activity::training));
}

TEST(Document, ComparisonPutsMeasuredBesidePlanned) {
  PlanDocument planned = document_of(kWords);
  planned.step_seconds = 2.0;
  planned.load_seconds = 4.0;
  Measured measured;
  measured.device_bytes = planned.device.report.peak_bytes;
  measured.step_seconds = 2.5;
  measured.load_seconds = 3.0;
  measured.outside_bytes = 10 << 20;
  const std::string text = comparison(planned, measured);
  for (const char* part : {"planned", "measured", "device", "1.000", "10.0 MiB", "2.50 s", "1.250",
                           "4.00 s", "3.00 s", "0.750"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

// On a card the arena is compared with the arena, and what lies outside of it with what the plan
// has for that.
TEST(Document, ComparisonPartsACardsMemory) {
  constexpr int64_t kMebibyte = 1 << 20;
  PlanDocument planned = document_of(kWords);
  Measured measured;
  EXPECT_EQ(comparison(planned, measured).find("outside on card"), std::string::npos);
  planned.card.emplace();
  planned.card->outside_bytes = 100 * kMebibyte;
  planned.card->reserved_bytes = 50 * kMebibyte;
  measured.device_bytes = planned.device.report.peak_bytes;
  measured.card.emplace();
  measured.card->outside_bytes = 120 * kMebibyte;
  const std::string text = comparison(planned, measured);
  EXPECT_NE(text.find("\noutside on card      150.0 MiB     120.0 MiB     0.800\n"),
            std::string::npos)
      << text;
}

// Of a run without a step there is no step's time.
TEST(Document, MeasuredHasWhatWasMeasured) {
  const std::vector<std::string> always{"device",  "host",    "load_seconds",
                                        "outside", "reading", "resident"};
  const std::vector<std::string> of_steps{"step_seconds", "tokens_per_second", "tokens_per_step"};
  const auto keys_of = [](const Measured& measured) {
    std::vector<std::string> keys;
    const auto json = nlohmann::json::parse(to_json(measured));
    for (const auto& item : json.items()) keys.push_back(item.key());
    return keys;
  };
  Measured measured;
  EXPECT_EQ(keys_of(measured), always);
  measured.step_seconds = 0.5;
  measured.step_tokens = 100;
  std::vector<std::string> all = always;
  all.insert(all.end(), of_steps.begin(), of_steps.end());
  std::ranges::sort(all);
  EXPECT_EQ(keys_of(measured), all);
  EXPECT_EQ(nlohmann::json::parse(to_json(measured))["tokens_per_second"], 200);
}

TEST(Document, MeasuredCountsTheData) {
  Measured measured;
  measured.data = {{"train.jsonl", false, 9, 8, 700, 300}, {"org/held", true, 2, 2, 60, 20}};
  EXPECT_EQ(nlohmann::json::parse(to_json(measured))["data"].dump(),
            R"([{"documents":8,"name":"train.jsonl","records":9,"tokens":700,"trained_tokens":300,)"
            R"("use":"training"},{"documents":2,"name":"org/held","records":2,"tokens":60,)"
            R"("trained_tokens":20,"use":"evaluation"}])");
}

TEST(Document, ParameterLineIsTheOneUsersRead) {
  PlanDocument document;
  document.trainable_parameters = 4194304;
  document.parameters = 6742609920;
  EXPECT_EQ(parameter_line(document),
            "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622");
}

}  // namespace
}  // namespace snug::plan
