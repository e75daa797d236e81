#include "generate/exact_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/console.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/request_shape.h"
#include "generate/prompt.h"
#include "generate/questions.h"

namespace snug::generate {
namespace {

constexpr size_t kShownAnswers = 5;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

struct Answer {
  std::string text;
  bool correct = false;
};

// The questions that a model was asked, and its answers.
struct Examination {
  std::vector<Question> questions;
  std::vector<Answer> answers;
  double seconds = 0;
  nlohmann::json device;

  int64_t correct() const {
    return std::count_if(answers.begin(), answers.end(),
                         [](const Answer& answer) { return answer.correct; });
  }
  double share() const {
    return static_cast<double>(correct()) / static_cast<double>(answers.size());
  }
};

// The number of new tokens for which there is room after the longest prompt. Where there is none,
// the error names that prompt's record.
int64_t room_for_answers(const formats::Recipe& recipe, const models::ModelConfig& model,
                         const std::vector<Question>& questions) {
  const Question& longest = *std::max_element(
      questions.begin(), questions.end(),
      [](const Question& a, const Question& b) { return a.ids.size() < b.ids.size(); });
  try {
    return new_tokens(recipe, model, static_cast<int64_t>(longest.ids.size()));
  } catch (const base::UserError& error) {
    throw base::UserError(error.what(), {longest.file, longest.line, 0});
  }
}

Examination examine(const formats::Recipe& recipe) {
  recipe.require("data");
  const models::ModelSource model = runtime::open_model(recipe);
  const text::Tokenizer tokenizer = open_tokenizer(recipe, model);
  Examination result;
  result.questions = read_questions(recipe, tokenizer, model.config.has_encoder());
  const bool is_chat = result.questions.front().is_conversation;
  const engine::AnswerEnd end{.ids = end_ids(recipe, tokenizer, is_chat)};
  const int64_t room = room_for_answers(recipe, model.config, result.questions);
  std::vector<engine::Request> requests;
  for (const Question& question : result.questions)
    requests.push_back({.prompt = question.ids, .max_new_tokens = room, .end = end});
  engine::Inference inference(recipe, model,
                              engine::shape_for(requests, recipe.batch, model.config));
  engine::Engine engine(inference, &tokenizer);
  const std::vector<engine::Answer> answers = engine.answers(requests);
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool correct = trimmed(answers[i].text) == trimmed(result.questions[i].expected);
    result.answers.push_back({answers[i].text, correct});
  }
  result.seconds = engine.times().prefill_seconds + engine.times().decode_seconds;
  result.device = inference.device_json();
  return result;
}

void print_json(const Examination& examination) {
  nlohmann::json answers = nlohmann::json::array();
  for (size_t i = 0; i < examination.answers.size(); ++i)
    answers.push_back({{"question", examination.questions[i].shown},
                       {"answer", examination.answers[i].text},
                       {"expected", examination.questions[i].expected},
                       {"correct", examination.answers[i].correct}});
  const nlohmann::json result = {
      {"exact_match", examination.share()},  {"correct", examination.correct()},
      {"total", examination.answers.size()}, {"seconds", examination.seconds},
      {"device", examination.device},        {"answers", answers}};
  base::print("{}\n", result.dump());
}

void print_text(const Examination& examination) {
  for (size_t i = 0; i < std::min(kShownAnswers, examination.answers.size()); ++i) {
    const Answer& answer = examination.answers[i];
    base::print("  {}\n    answer   {}{}\n", examination.questions[i].shown, trimmed(answer.text),
                answer.correct ? "  (correct)" : "");
    if (!answer.correct)
      base::print("    expected {}\n", trimmed(examination.questions[i].expected));
  }
  base::print("exact match: {} of {} ({:.1f} %), {:.1f} s\n", examination.correct(),
              examination.answers.size(), 100 * examination.share(), examination.seconds);
}

}  // namespace

int evaluate(const formats::Recipe& recipe, bool json) {
  const Examination examination = examine(recipe);
  if (json)
    print_json(examination);
  else
    print_text(examination);
  return 0;
}

}  // namespace snug::generate
