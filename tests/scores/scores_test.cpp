// Scores of answers: those of other people's code against their values
// (scripts/oracles/answer_scores.py), those of our own rules against examples of what they say, and
// lists of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "../base/captured_stream.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
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

struct Judged {
  const char* answer;
  const char* reference;
  double score;
};

void expect_judged(const std::string& name, const std::vector<Judged>& cases) {
  const Score score = score_named(name);
  for (const Judged& one : cases)
    EXPECT_EQ(score.of(one.answer, one.reference), one.score)
        << name << " of '" << one.answer << "' and '" << one.reference << "'";
}

TEST(Scores, NumbersAreThoseThatAnswersEndIn) {
  expect_judged("number", {{"She has 3 + 4 = 7 apples.", "7", 1},
                           {"7 of 8", "7", 0},
                           {"none", "7", 0},
                           {"#### 42", "so she has 6 * 7 = <<6*7=42>>42\n#### 42", 1},
                           {"#### 42\nIs that right? I have 3 doubts.", "42", 1},
                           {"#### Step 2\nThe sum is 9.", "9", 1},
                           {"#### $1,234,567.50", "1234567.5", 1},
                           {"1,2,3", "3", 1},
                           {"12,345", "12345", 1},
                           {"1,2345", "2345", 1},
                           {"It costs $18.", "18.00", 1},
                           {"-5", "5", 0},
                           {"3-5", "5", 1},
                           {"x = -5", "−5", 1},
                           {"-$5.20", "$-5.2", 1},
                           {"50%", "50", 1},
                           {"50\\%", "0.5", 0},
                           {".5", "1/2", 1},
                           {"1/5", "0.2", 1},
                           {"\\frac{3}{4}", "0.75", 1},
                           {"-\\dfrac{3}{4}", "-3/4", 1},
                           {"\\frac{-3}{4}", "-0.75", 1},
                           {"1/0", "0", 0},
                           {"1e3", "1,000", 1},
                           {"2.5e-3", "0.0025", 1},
                           {"3 eggs", "3", 1},
                           {"\\boxed{12} is what we get from 7", "12", 1},
                           {"\\boxed{x^2} and \\boxed{\\frac{1}{2}} in 1 step", "0.5", 1},
                           {"\\boxed{12{,}345}", "12345", 1},
                           {"\\boxed{12", "12", 1},
                           {"9007199254740993", "9007199254740991", 0},
                           {"version 1.2.", "1.2", 1}});
  EXPECT_EQ(score_named("number").problem_of("no idea"), "has no number");
  EXPECT_EQ(score_named("number").problem_of("#### 1"), "");
}

TEST(Scores, ChoicesAreLettersThatAnswersDecideFor) {
  expect_judged("choice", {{"B", "B", 1},
                           {"(B)", "B", 1},
                           {"B. Paris", "(B)", 1},
                           {"b", "B", 0},
                           {"A dog is not a cat, so the answer is (C).", "C", 1},
                           {"The answer is A, or is it? The answer is D.", "D", 1},
                           {"**Answer:** E", "E", 1},
                           {"ANSWER: C) Rome", "C", 1},
                           {"\\boxed{\\text{D}}", "D", 1},
                           {"A: because B is wrong", "A", 1},
                           {"I would take (A) over (E)", "E", 1},
                           {"A dog", "A", 0},
                           {"So it must be A", "A", 1},
                           {"It is D's turn, and B wins", "B", 1},
                           {"C\nbecause (D) is odd", "C", 1},
                           {"Every Dog", "D", 0}});
  EXPECT_EQ(score_named("choice").problem_of("Paris"), "has no letter from A to E");
}

TEST(Scores, PatternsFindATextOrMatchTheWhole) {
  expect_judged(R"(regex:<a>(\w+)</a>)", {{"so <a>x</a> <a>y</a>", "x", 1},
                                          {"<a>x</a>", "<a>x</a>", 1},
                                          {"x", "x", 0},
                                          {"<a>x</a>", "y", 0}});
  expect_judged("regex:[0-9]{1,3}", {{"about 12", "12", 1}, {"about 1234", "123", 1}});
  expect_judged("format:(?s)<think>.*</think>.+", {{" <think>a\nb</think>c\n", "", 1},
                                                   {"<think>a</think>", "", 0},
                                                   {"a<think></think>b", "", 0}});
  const Score slow = score_named("format:(a|aa)+[bc]");
  const std::string endless(100, 'a');
  const snug::testing::CapturedStream said(stderr);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(slow.of(endless, ""), 0);
  EXPECT_EQ(slow.of("aab", ""), 1);
  const std::string told = said.text();
  EXPECT_TRUE(told.starts_with("the regular expression '(a|aa)+[bc]' gave up on 'aaa")) << told;
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  const Score found = score_named("regex:(?:a|aa)+[bc]$");
  EXPECT_EQ(found.of(endless, "aab"), 0);
  EXPECT_THROW(found.problem_of(endless), base::UserError);
}

TEST(Scores, SchemasJudgeAsJsonschemaDoes) {
  const Json goldens = score_goldens();
  for (const Json& one : goldens["schemas"]) {
    const snug::testing::TemporaryFolder folder;
    const std::string file = folder.write("schema.json", one["schema"].dump()).string();
    const Score score = score_named("json_schema:" + file);
    for (const Json& answer : one["answers"])
      EXPECT_EQ(score.of(answer[0].get<std::string>(), ""), answer[1].get<bool>() ? 1 : 0)
          << one["schema"] << answer[0];
  }
}

std::vector<std::string> names_of(const std::vector<std::string>& list) {
  const std::vector<Score> scores = scores_of(list);
  std::vector<std::string> names;
  names.reserve(scores.size());
  for (const Score& score : scores) names.push_back(score.name());
  return names;
}

TEST(ScoreLists, CommasBelongToAPatternWhereNoNameFollows) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of({"exact, rougeL,regex:a{1,3},b ,bleu"}),
            (Names{"exact", "rougeL", "regex:a{1,3},b ", "bleu"}));
  EXPECT_EQ(names_of({"exact", "format:x,y"}), (Names{"exact", "format:x,y"}));
}

TEST(ScoreLists, AWeightStandsAfterTheLastColon) {
  constexpr std::array<std::string_view, 1> kOthers{"exec"};
  const auto weighed = weighed_names_of_list(
      recipe_without_places(), "rewards",
      {"number:2,format:a:b,length:-1e-3,regex:a:0.5,regex:5,exec:./a --x=1,2:0.5", "exec:b,exact"},
      kOthers);
  const std::vector<std::string> names{"number",  "format:a:b",       "length", "regex:a",
                                       "regex:5", "exec:./a --x=1,2", "exec:b", "exact"};
  const std::vector<double> weights{2, 1, -1e-3, 0.5, 1, 0.5, 1, 1};
  ASSERT_EQ(weighed.size(), names.size());
  for (size_t i = 0; i < weighed.size(); ++i) {
    EXPECT_EQ(weighed[i].written, names[i]);
    EXPECT_EQ(weighed[i].weight, weights[i]);
  }
  EXPECT_THROW(weighed_names_of_list(recipe_without_places(), "rewards", {"exact:1,exact:2"}),
               base::UserError);
}

TEST(ScoreLists, MistakesSayWhatToDo) {
  const auto message_of = [](const std::string& list) -> std::string {
    try {
      scores_of({list});
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of("rogueL"),
            "'eval_metrics' has 'rogueL', but there is no such score; did you mean rougeL?");
  EXPECT_EQ(message_of("exact,,bleu"),
            "'eval_metrics' lacks a name: it is empty or has a comma too many; there are exact, "
            "rouge1, rouge2, "
            "rougeL, rougeLsum, bleu, edit_distance, edit_similarity, number, choice, regex, "
            "format, json_schema, length, repetition");
  EXPECT_EQ(message_of("exact:2"),
            "'eval_metrics' has 'exact:2', but exact takes nothing after a colon; leave ':2' out");
  EXPECT_EQ(message_of("regex"),
            "'eval_metrics' has 'regex', but regex needs its PATTERN after a colon: "
            "regex:PATTERN");
  EXPECT_EQ(message_of(","), message_of("exact,,bleu"));
  EXPECT_EQ(message_of("bleu,bleu"), "'eval_metrics' has 'bleu' twice; keep one");
  EXPECT_EQ(message_of("repetition:0"),
            "'eval_metrics' has 'repetition:0', but N must be a whole number from 1 to 1000: how "
            "many words a run has");
  EXPECT_NE(
      message_of("regex:(").find("has 'regex:(', but the regular expression '(' is not valid"),
      std::string::npos);
  EXPECT_NE(message_of("json_schema:nowhere.json").find("nowhere.json"), std::string::npos);
}

}  // namespace
}  // namespace snug::scores
