// Scores of answers: those of other people's code against their values
// (scripts/oracles/answer_scores.py), those of our own rules against examples of what they say, and
// lists of them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "scores/bleu.h"
#include "scores/score_list.h"

namespace snug::scores {
namespace {

using Json = nlohmann::json;

Json score_goldens() {
  return Json::parse(base::read_text_file("tests/goldens/answer_scores.json"));
}

formats::Recipe recipe_without_places() { return {}; }

std::vector<Score> scores_of(const std::vector<std::string>& list) {
  return scores_of_list(recipe_without_places(), "eval_metrics", list);
}

Score score_named(const std::string& written) { return scores_of({written}).front(); }

void expect_near(double ours, double theirs, const std::string& what) {
  EXPECT_NEAR(ours, theirs, 1e-9 * std::abs(theirs)) << what;
}

TEST(Scores, OfOneAnswerAreThoseOfTheOracles) {
  const Json goldens = score_goldens();
  std::map<std::string, Score> scores;
  for (const auto& [name, value] : goldens["pairs"][0]["scores"].items())
    scores.emplace(name, score_named(name));
  ASSERT_GE(goldens["pairs"].size(), 60U);
  for (const Json& pair : goldens["pairs"]) {
    const auto answer = pair["answer"].get<std::string>();
    const auto reference = pair["reference"].get<std::string>();
    EXPECT_EQ(bleu_words(answer), pair["words"].get<std::vector<std::string>>()) << answer;
    for (const auto& [name, score] : scores)
      expect_near(score.of(answer, reference), pair["scores"][name].get<double>(),
                  name + " of '" + answer + "' and '" + reference + "'");
  }
}

// A corpus has no mean of BLEU: counts are summed, and runs longer than all answers make it 0.
TEST(Scores, BleuOfManyAnswersIsThatOfSacrebleu) {
  const Json goldens = score_goldens();
  std::vector<std::string> texts;
  for (const Json& pair : goldens["pairs"])
    for (const char* side : {"answer", "reference"}) texts.push_back(pair[side].get<std::string>());
  std::vector<ScoredAnswer> answers;
  for (size_t i = 0; i < texts.size(); i += 2) answers.push_back({texts[i], texts[i + 1]});
  const Score bleu = score_named("bleu");
  EXPECT_FALSE(bleu.is_mean());
  expect_near(bleu.of_all(answers), goldens["corpus_bleu"].get<double>(), "the corpus");
  const std::span<const ScoredAnswer> all(answers);
  for (size_t group = 0; group < goldens["groups_of_seven"].size(); ++group)
    expect_near(bleu.of_all(all.subspan(7 * group, std::min<size_t>(7, all.size() - 7 * group))),
                goldens["groups_of_seven"][group].get<double>(), std::to_string(group));
  EXPECT_EQ(bleu.of_all(std::vector<ScoredAnswer>{{"one two three", "one two three"}}), 0);
  EXPECT_NEAR(bleu.of("one two three", "one two three"), 100, 1e-12);
}

}  // namespace
}  // namespace snug::scores
