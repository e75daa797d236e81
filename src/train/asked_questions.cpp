#include "train/asked_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "engine/questions/asked_questions.h"
#include "methods/objective.h"
#include "scores/score_list.h"
#include "text/unicode/utf8.h"
#include "train/rewards/answer_metrics.h"

namespace snug::train {
namespace {

// Reads the sources of one set until there are as many questions as are wanted.
class SetReader {
 public:
  SetReader(const formats::Recipe& recipe, const AskedSet& set, const text::Tokenizer& tokenizer)
      : recipe_(recipe), set_(set), tokenizer_(tokenizer) {}

  std::vector<engine::Question> run() {
    for (const text::RecordSource& source : set_.sources) read(source);
    if (questions_.empty()) refuse();
    if (too_long_ > 0)
      base::say(
          "eval_generate: {} of the first {} prompts {} more than {} tokens, as many as the "
          "longest "
          "evaluation document has, and {} not asked",
          too_long_, too_long_ + std::ssize(questions_), too_long_ == 1 ? "has" : "have",
          set_.prompt_tokens, too_long_ == 1 ? "is" : "are");
    return std::move(questions_);
  }

 private:
  int64_t missing() const { return recipe_.eval_generate - std::ssize(questions_) - too_long_; }

  void read(const text::RecordSource& source) {
    const text::DatasetOptions& options = source.options;
    const text::RecordRules rules{
        .form = options.form,
        .has_encoder = options.encoder_length > 0,
        .ignored = options.ignored_fields,
        .mapping = options.mapping.is_empty() ? nullptr : &options.mapping};
    int64_t records = 0;
    for (const std::string& file : source.files) {
      const int64_t left = source.limit > 0 ? source.limit - records : 0;
      if (missing() <= 0 || (source.limit > 0 && left <= 0)) return;
      engine::QuestionFile asked{.path = file,
                                 .rules = rules,
                                 .chat_template = options.chat_template,
                                 .most_records = left,
                                 .most_questions = missing()};
      if (set_.held_out)
        asked.takes = [&](const text::RawRecord& raw) { return set_.held_out->holds(raw); };
      engine::EvaluatedRecords of_file;
      take(engine::questions_in(asked, tokenizer_, of_file));
      records += of_file.count;
      if (of_file.bad.count() > 0 && !questions_.empty())
        base::say("eval_generate: {}", of_file.bad.told(file, of_file.count));
      if (of_file.bad.count() > 0) refused_ = {file, std::move(of_file)};
    }
  }

  void take(std::vector<engine::Question> more) {
    for (engine::Question& question : more) {
      if (std::ssize(question.ids) > set_.prompt_tokens) {
        ++too_long_;
        continue;
      }
      question.expected = text::repair_utf8(question.expected);
      questions_.push_back(std::move(question));
    }
  }

  [[noreturn]] void refuse() const {
    if (too_long_ > 0)
      recipe_.fail("eval_generate",
                   fmt::format("asks {} records of an evaluation set, and the prompts of all have "
                               "more than the {} tokens of the longest evaluation document; give a "
                               "greater max_length",
                               too_long_, set_.prompt_tokens));
    if (refused_.second.bad.count() > 0)
      refused_.second.bad.fail(refused_.first, refused_.second.count,
                               "eval_generate has nothing to ask");
    recipe_.fail("eval_generate", "asks records of an evaluation set that has none");
  }

  const formats::Recipe& recipe_;
  const AskedSet& set_;
  const text::Tokenizer& tokenizer_;
  std::vector<engine::Question> questions_;
  int64_t too_long_ = 0;
  std::pair<std::string, engine::EvaluatedRecords> refused_;  // the last file that had such records
};

}  // namespace

std::vector<scores::Score> answer_scores(const formats::Recipe& recipe) {
  if (recipe.eval_generate == 0) return {};
  return scores::scores_of_list(recipe, "eval_metrics", recipe.eval_metrics);
}

std::vector<std::string> evaluation_measures(const formats::Recipe& recipe,
                                             std::span<const std::string> reward_functions) {
  const methods::Objective& objective = methods::objective_of(recipe.objective);
  if (objective.makes_answers) return evaluated_measures(reward_functions);
  const std::span<const std::string_view> measured = methods::measures_of_evaluation(objective);
  const std::vector<scores::Score> judges = answer_scores(recipe);
  std::vector<std::string> names(measured.begin(), measured.end());
  names.reserve(names.size() + judges.size());
  for (const scores::Score& score : judges) names.push_back(score.name());
  return names;
}

std::vector<engine::Question> asked_questions(const formats::Recipe& recipe, const AskedSet& set,
                                              const models::ModelConfig& model,
                                              const text::Tokenizer& tokenizer) {
  std::vector<engine::Question> questions = SetReader(recipe, set, tokenizer).run();
  engine::check_expected(answer_scores(recipe), questions);
  engine::room_for_answers(recipe, model, questions);
  return questions;
}

}  // namespace snug::train
