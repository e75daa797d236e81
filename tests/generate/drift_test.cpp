// How far a model is from what was trained: against log_softmax and kl_div of torch on the logits
// of transformers and PEFT; which documents are compared.
#include "generate/drift.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using generate::compared_documents;
using generate::ComparedDocument;
using generate::Drift;
using generate::DriftSums;
using generate::TrainedOutputs;

struct Pair {
  std::string name;
  formats::Recipe trained;
  std::string other;  // folder
  std::vector<ComparedDocument> documents;
  Drift expected;
};

Pair pair_of(const nlohmann::json& json) {
  std::vector<std::string> words{"model=" + kGoldens + json.at("model").get<std::string>()};
  if (const std::string adapter = json.at("adapter"); !adapter.empty())
    words.push_back("adapter=" + kGoldens + adapter);
  Pair pair{.name = json.at("pair"),
            .trained = recipe_of(words),
            .other = kGoldens + json.at("other").get<std::string>(),
            .documents = {},
            .expected = {.tokens = json.at("tokens"),
                         .mean_kl = json.at("mean_kl"),
                         .most_kl = json.at("most_kl"),
                         .mean_difference = json.at("mean_difference"),
                         .most_difference = json.at("most_difference"),
                         .equal_greedy = json.at("equal_greedy")}};
  for (const nlohmann::json& document : json.at("documents"))
    pair.documents.push_back({.encoder_ids = document.at("encoder_ids").get<engine::Ids>(),
                              .ids = document.at("ids").get<engine::Ids>()});
  return pair;
}

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const nlohmann::json& json :
       nlohmann::json::parse(base::read_text_file(kGoldens + "drift/drift.json")))
    all.push_back(pair_of(json));
  return all;
}

// Logits in fp32 differ by 1e-6 from transformers', and a KL as small as theirs is the square of
// differences of 1e-3.
void expect_near(const Drift& drift, const Drift& expected) {
  EXPECT_EQ(drift.tokens, expected.tokens);
  EXPECT_NEAR(drift.mean_kl, expected.mean_kl, 1e-7 + 1e-4 * expected.mean_kl);
  EXPECT_NEAR(drift.most_kl, expected.most_kl, 1e-7 + 1e-4 * expected.most_kl);
  EXPECT_NEAR(drift.mean_difference, expected.mean_difference, 1e-5);
  EXPECT_NEAR(drift.most_difference, expected.most_difference, 1e-5);
  EXPECT_DOUBLE_EQ(drift.equal_greedy, expected.equal_greedy);
}

TEST(Drift, IsThatOfTorch) {
  for (const Pair& pair : pairs()) {
    SCOPED_TRACE(pair.name);
    TrainedOutputs trained(pair.trained, pair.documents);
    EXPECT_EQ(trained.costs().tokens, pair.expected.tokens);
    trained.compute();
    EXPECT_GT(trained.arena_bytes(), 0);
    expect_near(trained.compare(pair.other), pair.expected);
    // Once more, since what is kept is read and not used up.
    expect_near(trained.compare(pair.other), pair.expected);
  }
}

TEST(Drift, OfEqualModelsIsZero) {
  TrainedOutputs trained(golden_recipe("gemma2"), {{{}, {3, 7, 1, 20, 11}}, {{}, {5, 9}}});
  trained.compute();
  const Drift drift = trained.compare(kGoldens + "gemma2/model");
  EXPECT_EQ(drift.tokens, 5);
  EXPECT_EQ(drift.mean_kl, 0);
  EXPECT_EQ(drift.most_kl, 0);
  EXPECT_EQ(drift.most_difference, 0);
  EXPECT_EQ(drift.equal_greedy, 1);
}

// The values of NF4 that the base had in training are not those of its folder.
TEST(Drift, ComparesWithTheBaseInFourBits) {
  TrainedOutputs trained(golden_recipe("grouped_tied", {"load_in_4bit=true", "double_quant=true"}),
                         {{{}, {3, 7, 1, 20, 11, 90, 4}}});
  trained.compute();
  const Drift drift = trained.compare(kGoldens + "grouped_tied/model");
  EXPECT_GT(drift.mean_kl, 1e-5);
}

TEST(Drift, RefusesAnotherVocabulary) {
  TrainedOutputs trained(golden_recipe("gemma2"), {{{}, {3, 7, 1}}});
  trained.compute();
  try {
    trained.compare(kGoldens + "gemma/model");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("61 tokens"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("47"));
  }
}

TEST(DriftSums, OfOnePrediction) {
  const std::vector<float> trained{std::log(0.5F), std::log(0.25F), std::log(0.25F)};
  const std::vector<float> other{std::log(0.25F), std::log(0.5F), std::log(0.25F)};
  DriftSums sums;
  sums.add(trained, other, 1);
  const Drift drift = sums.drift();
  EXPECT_NEAR(drift.mean_kl, 0.25 * std::log(2.0), 1e-7);
  EXPECT_NEAR(drift.mean_difference, std::log(2.0), 1e-7);
  EXPECT_EQ(drift.equal_greedy, 0);
}

// Some models mask a token with an infinity; it has no probability in either.
TEST(DriftSums, PassOverWhatIsImpossible) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  DriftSums sums;
  sums.add(std::vector<float>{1, kNever, 2}, std::vector<float>{1, kNever, 2}, 0);
  EXPECT_EQ(sums.drift().mean_kl, 0);
  sums.add(std::vector<float>{1, 2}, std::vector<float>{1, kNever}, 0);
  EXPECT_TRUE(std::isinf(sums.drift().mean_kl));
  EXPECT_TRUE(std::isinf(sums.drift().most_kl));
}

text::DocumentStore store_of(const std::vector<size_t>& lengths) {
  text::DocumentStore store;
  int32_t next = 1;
  for (const size_t length : lengths) {
    engine::Ids ids(length);
    for (int32_t& id : ids) id = next++;
    store.add(ids, std::vector<uint8_t>(length, 1));
  }
  store.finish();
  return store;
}

models::ModelConfig positions(int64_t count) {
  models::ModelConfig model;
  model.max_position = count;
  return model;
}

TEST(ComparedDocuments, OfFewLongOnesShareEvenly) {
  const auto documents = compared_documents(store_of({100, 100, 3}), 30, positions(64));
  ASSERT_EQ(documents.size(), 3U);
  EXPECT_EQ(documents[0].predictions(), 10);
  EXPECT_EQ(documents[1].predictions(), 10);
  EXPECT_EQ(documents[1].ids.front(), 101);
  EXPECT_EQ(documents[2].predictions(), 2);
}

TEST(ComparedDocuments, AreTheFirstUpToTheirNumberOfTokens) {
  const auto documents =
      compared_documents(store_of(std::vector<size_t>(50, 5)), 16, positions(64));
  ASSERT_EQ(documents.size(), 8U);
  EXPECT_EQ(predictions(documents), 16);
  EXPECT_EQ(documents[7].ids.size(), 3U);
}

TEST(ComparedDocuments, AreCutAtTheModelsPositions) {
  const auto documents = compared_documents(store_of({100}), 1000, positions(64));
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].ids.size(), 64U);
}

TEST(ComparedDocuments, HaveWhatAnEncoderReads) {
  text::DocumentStore store;
  store.add_pair(engine::Ids{7, 8, 9}, engine::Ids{4, 5, 6, 1}, std::vector<uint8_t>(4, 1));
  store.finish();
  const auto documents = compared_documents(store, 3, positions(64));
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].encoder_ids, (engine::Ids{7, 8, 9}));
  EXPECT_EQ(documents[0].ids, (engine::Ids{4, 5, 6}));
  EXPECT_EQ(documents[0].predictions(), 3);
}

}  // namespace
}  // namespace snug::testing
