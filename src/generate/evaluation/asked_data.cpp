#include "generate/evaluation/asked_data.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "engine/questions/prompt.h"
#include "generate/evaluation/answers.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {
namespace {

// Without white space at both ends.
std::string_view trimmed(std::string_view text) {
  return text::jinja::strip(text, text::jinja::Side::both);
}

// The number of new tokens for which there is room after the longest prompt. Where there is none,
// the error names that prompt's record.
int64_t room_for_answers(const ModelToAsk& model, const std::vector<engine::Question>& questions) {
  const engine::Question& longest = *std::max_element(
      questions.begin(), questions.end(), [](const engine::Question& a, const engine::Question& b) {
        return a.ids.size() < b.ids.size();
      });
  try {
    return engine::new_tokens(model.recipe, model.source.config, std::ssize(longest.ids));
  } catch (const base::UserError& error) {
    throw base::UserError(error.what(), {longest.file, longest.line, 0});
  }
}

}  // namespace

int64_t AskedData::correct() const {
  return std::ranges::count(answers, true, &Answer::is_correct);
}

AskedData asked_data(const ModelToAsk& model) {
  AskedData asked;
  asked.questions =
      read_questions(model.recipe, model.tokenizer, model.source.config.has_encoder());
  const bool is_chat = asked.questions.front().is_conversation;
  const int64_t room = room_for_answers(model, asked.questions);
  const engine::AnswerEnd end{.ids = engine::end_ids(model.recipe, model.tokenizer, is_chat)};
  std::vector<AskedPrompt> prompts;
  for (const engine::Question& question : asked.questions)
    prompts.push_back({{.prompt = question.ids, .max_new_tokens = room, .end = end}, true});
  std::vector<double> scores;
  for (std::string& text : answers_to(model, prompts, asked.run)) {
    const std::string& expected = asked.questions[asked.answers.size()].expected;
    const bool is_correct = trimmed(text) == trimmed(expected);
    asked.answers.push_back({std::move(text), is_correct});
    scores.push_back(is_correct ? 1 : 0);
  }
  asked.exact_match = mean_figure(scores);
  asked.exact_match.metric = "exact_match";
  return asked;
}

}  // namespace snug::generate
