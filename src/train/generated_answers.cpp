#include "train/generated_answers.h"

#include <algorithm>

#include "base/console.h"
#include "base/error.h"
#include "engine/questions/prompt.h"
#include "plan/document/document.h"
#include "plan/time/clock.h"
#include "program/ir/program_name.h"
#include "text/unicode/utf8.h"
#include "train/asked_questions.h"

namespace snug::train {
namespace {

int64_t longest_prompt(std::span<const EvaluationSet> sets) {
  int64_t longest = 0;
  for (const EvaluationSet& set : sets)
    for (const engine::Question& question : set.questions)
      longest = std::max<int64_t>(longest, std::ssize(question.ids));
  return longest;
}

// As `snug evaluate` asks them.
std::vector<engine::Request> requests_to(std::span<const EvaluationSet> sets,
                                         const formats::Recipe& recipe,
                                         const models::ModelConfig& model,
                                         const text::Tokenizer& tokenizer) {
  const int64_t new_tokens = engine::new_tokens(recipe, model, longest_prompt(sets));
  std::vector<engine::Request> requests;
  for (const EvaluationSet& set : sets) {
    requests.reserve(requests.size() + set.questions.size());
    const bool is_chat = set.questions.front().is_conversation;
    const engine::AnswerEnd end{.ids = engine::end_ids(recipe, tokenizer, is_chat)};
    for (const engine::Question& question : set.questions)
      requests.push_back({.prompt = question.ids, .max_new_tokens = new_tokens, .end = end});
  }
  return requests;
}

}  // namespace

GeneratedAnswers::GeneratedAnswers(std::span<const EvaluationSet> sets,
                                   const formats::Recipe& recipe, const plan::TrainingSpec& spec,
                                   const text::Tokenizer& tokenizer, runtime::Executor& executor)
    : sets_(sets),
      spec_(spec),
      tokenizer_(tokenizer),
      executor_(executor),
      scores_(answer_scores(recipe)),
      requests_(requests_to(sets, recipe, spec.model, tokenizer)),
      answers_(sets.size()) {
  SNUG_CHECK(spec.generation.has_value(), "the job has no programs that generate");
  names_.reserve(scores_.size());
  for (const scores::Score& score : scores_) names_.push_back(score.name());
}

void GeneratedAnswers::run() {
  engine::Engine engine(executor_, spec_.model, *spec_.generation, {.tokenizer = &tokenizer_});
  const std::vector<engine::Answer> answers = engine.answers(requests_);
  times_ = engine.times();
  size_t next = 0;
  for (size_t set = 0; set < sets_.size(); ++set) {
    answers_[set].clear();
    answers_[set].reserve(sets_[set].questions.size());
    for (size_t i = 0; i < sets_[set].questions.size(); ++i)
      answers_[set].push_back(text::repair_utf8(answers[next++].text));
  }
}

std::vector<double> GeneratedAnswers::figures(size_t set) const {
  std::vector<scores::ScoredAnswer> scored;
  scored.reserve(answers_[set].size());
  for (size_t i = 0; i < answers_[set].size(); ++i)
    scored.push_back({answers_[set][i], sets_[set].questions[i].expected});
  std::vector<double> figures;
  figures.reserve(scores_.size());
  for (const scores::Score& score : scores_) figures.push_back(score.of_all(scored));
  return figures;
}

std::vector<AnswerSample> GeneratedAnswers::samples() const {
  std::vector<AnswerSample> samples;
  for (size_t set = 0; set < sets_.size(); ++set) {
    const int64_t shown = std::min<int64_t>(kSamples, std::ssize(answers_[set]));
    for (size_t i = 0; i < static_cast<size_t>(shown); ++i) {
      const engine::Question& question = sets_[set].questions[i];
      AnswerSample sample{.set = sets_.size() > 1 ? sets_[set].name : "",
                          .prompt = question.shown,
                          .answer = answers_[set][i],
                          .expected = question.expected,
                          .scores = {}};
      sample.scores.reserve(scores_.size());
      for (const scores::Score& score : scores_)
        sample.scores.push_back(score.of(sample.answer, sample.expected));
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

void GeneratedAnswers::say_speed(const plan::Rates& rates) const {
  const program::Program* decode = executor_.job().find(program::ProgramName::decode);
  if (times_.decode_runs == 0 || decode == nullptr) return;
  const plan::InferenceShape& shape = *spec_.generation;
  const program::ExpectedBounds half_full{.mean_segment_tokens =
                                              static_cast<double>(shape.capacity.decoder()) / 2};
  base::say("answers: a decoding step takes {}, a mean of {}; {} were planned for {} side by side",
            plan::readable_seconds(times_.decode_seconds / static_cast<double>(times_.decode_runs)),
            times_.decode_runs,
            plan::readable_seconds(plan::simulate(*decode, rates, half_full).seconds),
            shape.sequences);
}

}  // namespace snug::train
