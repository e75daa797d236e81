#include "generate/evaluation/asked_data.h"

#include <algorithm>
#include <string_view>

#include "engine/questions/asked_questions.h"
#include "engine/questions/prompt.h"
#include "generate/evaluation/answers.h"
#include "scores/score_list.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {
namespace {

// Without white space at both ends.
std::string_view trimmed(std::string_view text) {
  return text::jinja::strip(text, text::jinja::Side::both);
}

// Scores all answers, and gives the figure of one metric.
Figure figure_of_metric(const scores::Score& metric, AskedData& asked) {
  std::vector<double> values;
  std::vector<scores::ScoredAnswer> answers;
  values.reserve(asked.answers.size());
  answers.reserve(asked.answers.size());
  for (size_t i = 0; i < asked.answers.size(); ++i) {
    answers.push_back({asked.answers[i].text, asked.questions[i].expected});
    values.push_back(metric.of(answers.back().answer, answers.back().reference));
    asked.answers[i].scores.push_back(values.back());
  }
  Figure figure = mean_figure(values);
  if (!metric.is_mean()) {
    figure.value = metric.of_all(answers);
    figure.standard_error.reset();
  }
  figure.metric = metric.name();
  return figure;
}

}  // namespace

int64_t AskedData::correct() const {
  return std::ranges::count(answers, true, &Answer::is_correct);
}

AskedData asked_data(const ModelToAsk& model) {
  const std::vector<scores::Score> metrics =
      scores::scores_of_list(model.recipe, "eval_metrics", model.recipe.eval_metrics);
  AskedData asked;
  asked.questions =
      read_questions(model.recipe, model.tokenizer, model.source.config.has_encoder());
  engine::check_expected(metrics, asked.questions);
  const bool is_chat = asked.questions.front().is_conversation;
  const int64_t room = engine::room_for_answers(model.recipe, model.source.config, asked.questions);
  const engine::AnswerEnd end{.ids = engine::end_ids(model.recipe, model.tokenizer, is_chat)};
  std::vector<AskedPrompt> prompts;
  for (const engine::Question& question : asked.questions)
    prompts.push_back({{.prompt = question.ids, .max_new_tokens = room, .end = end}, true});
  std::vector<double> scores;
  for (std::string& text : answers_to(model, prompts, asked.run)) {
    const std::string& expected = asked.questions[asked.answers.size()].expected;
    const bool is_correct = trimmed(text) == trimmed(expected);
    asked.answers.push_back({.text = std::move(text), .is_correct = is_correct});
    scores.push_back(is_correct ? 1 : 0);
  }
  asked.exact_match = mean_figure(scores);
  asked.exact_match.metric = "exact_match";
  asked.figures.reserve(metrics.size());
  for (const scores::Score& metric : metrics)
    asked.figures.push_back(figure_of_metric(metric, asked));
  return asked;
}

}  // namespace snug::generate
