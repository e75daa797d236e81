// The answers that an evaluation generates, with the weights as they are, by the programs of the
// training job (TrainingSpec::generation), and how good they are. Answers are greedy. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/request.h"
#include "formats/recipe/recipe.h"
#include "plan/job/job.h"
#include "plan/time/rates.h"
#include "runtime/execution/executor.h"
#include "scores/score.h"
#include "text/tokenizer/tokenizer.h"
#include "train/answer_sample.h"
#include "train/data.h"
#include "train/evaluated_answers.h"

namespace snug::train {

class GeneratedAnswers : public EvaluatedAnswers {
 public:
  // So many answers of each set are samples.
  static constexpr int64_t kSamples = 8;

  // Requires sets with questions, and a spec that generates. Everything must outlive the object.
  GeneratedAnswers(std::span<const EvaluationSet> sets, const formats::Recipe& recipe,
                   const plan::TrainingSpec& spec, const text::Tokenizer& tokenizer,
                   runtime::Executor& executor);

  void run() override;

  const std::vector<std::string>& names() const override { return names_; }
  std::vector<double> figures(size_t set) const override;
  std::vector<AnswerSample> samples() const override;
  const std::vector<std::string>& sample_names() const override { return names_; }
  double seconds() const override { return times_.prefill_seconds + times_.decode_seconds; }
  // Says how long a decoding step took, in the mean of all sizes, next to that of the largest
  // program.
  void say_speed(const plan::Rates& rates) const override;

 private:
  std::span<const EvaluationSet> sets_;
  const plan::TrainingSpec& spec_;
  const text::Tokenizer& tokenizer_;
  runtime::Executor& executor_;
  std::vector<scores::Score> scores_;
  std::vector<std::string> names_;
  std::vector<engine::Request> requests_;          // of all sets, in their order
  std::vector<std::vector<std::string>> answers_;  // of each set
  engine::EngineTimes times_;
};

}  // namespace snug::train
