// Steps of learning from rewards: every few of them the model, as it is then, answers prompts, and
// each step learns from some of these answers. A row of the run stands for a prompt and an update:
// `updates` rows of the run share a prompt, so that each step takes whole rows. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/job/job.h"
#include "text/row/row_source.h"
#include "train/rewards/answer_batches.h"
#include "train/rewards/generation.h"
#include "train/rewards/rollouts.h"
#include "train/step_data.h"

namespace snug::train {

class AnswerSteps : public StepData {
 public:
  // `rows`: each holds one document, which is the prompt of that number. Everything must outlive
  // the object. `on_answers` is told of each generation, before the first step that learns from it.
  using OnAnswers = std::function<void(int64_t step, const Rollouts& rollouts)>;
  AnswerSteps(const formats::Recipe& recipe, const plan::TrainingSpec& spec,
              const std::vector<RewardedPrompt>& prompts, text::RowSource& rows,
              const text::Tokenizer& tokenizer, RewardFunctions& rewards,
              runtime::Executor& executor, const runtime::Ranks& ranks, OnAnswers on_answers = {});

  int64_t step_rows() const override { return sizes_.prompts(); }
  int64_t rows_per_epoch() override { return rows_.rows_until(1) * sizes_.updates(); }
  bool ends_epoch(const Step& step) override;
  bool runs_model(int64_t step) const override { return needs_answers(step); }
  std::optional<methods::RowCounts> begin(const Step& step,
                                          const std::atomic<int>& stop_signal) override;
  int64_t micro_batches() const override { return batches_.count(); }
  int64_t first_row_of(int64_t micro) const override {
    return own_part(sizes_.update_answers, ranks_).begin + batches_.first_answer(micro);
  }
  void load(program::ProgramName program, int64_t micro) override { batches_.load(program, micro); }
  std::span<const NamedMeasure> measures() const override { return measures_; }

  // The answers of a generation from which later steps learn, too.
  std::string state(int64_t step) const override;
  void restore(const std::string& state) override;

  const Generation& generation() const { return generation_; }

 private:
  // The place of a step among those that share a generation.
  int64_t place_of(int64_t step) const { return (step - 1) % sizes_.updates(); }
  bool begins_generation(int64_t step) const { return place_of(step) == 0; }
  // A run that goes on with another number of updates may begin within a generation.
  bool needs_answers(int64_t step) const {
    return begins_generation(step) || generation_.answers.empty();
  }
  int64_t document_of(int64_t row);
  bool generate(const Step& step, const std::atomic<int>& stop_signal);
  // Replaces the log-probabilities by those of the training forward pass; this rank's part of them.
  void recompute_log_probabilities();
  void recompute_own();
  std::vector<PackedAnswer> packed(std::span<const int64_t> numbers) const;
  // The answers that an update learns from.
  std::vector<int64_t> slice_of(int64_t step) const;
  void pack(int64_t step);
  void pack_own(std::span<const PackedAnswer> answers);
  double step_tokens() const;
  // Tokens at which the model was certain are not learned (top_entropy_quantile).
  void leave_out_certain(std::span<PackedAnswer> answers) const;

  const formats::Recipe& recipe_;
  const plan::RolloutSizes sizes_;
  const std::vector<RewardedPrompt>& prompts_;
  text::RowSource& rows_;
  runtime::Executor& executor_;
  const runtime::Ranks& ranks_;
  OnAnswers on_answers_;
  Rollouts rollouts_;
  AnswerBatches batches_;
  Generation generation_;
  methods::RowCounts counts_;  // of the step, on all ranks
  std::vector<NamedMeasure> measures_;
  // A row's buffers, of which only the document is read.
  std::vector<int32_t> ids_;
  std::vector<int32_t> targets_;
  std::vector<text::Segment> segments_;
  std::vector<int32_t> documents_;
};

}  // namespace snug::train
