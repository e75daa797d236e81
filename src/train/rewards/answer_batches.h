// Answers with their prompts, packed into the batch tensors of micro-batches, one after another as
// long as there is room. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "methods/step_inputs.h"
#include "plan/job/job.h"
#include "runtime/execution/executor.h"
#include "train/rewards/generation.h"
#include "train/rewards/token_weights.h"

namespace snug::train {

// An answer as an update learns it.
struct PackedAnswer {
  std::span<const int32_t> prompt;
  const LearnedAnswer* answer = nullptr;
  bool is_learned = true;   // or it only takes part in the counts
  double weight = 0;        // of each of its tokens
  float least_entropy = 0;  // tokens below it are not learned

  // The last token of the answer predicts nothing.
  int64_t tokens() const { return std::ssize(prompt) + std::ssize(answer->ids) - 1; }
  bool learns(size_t token) const {
    return is_learned && (least_entropy <= 0 || answer->entropies[token] >= least_entropy);
  }
  int64_t learned_tokens() const;
};

methods::RowCounts counts_of(std::span<const PackedAnswer> answers);

class AnswerBatches {
 public:
  // Both must outlive the object. `spec` has the rollouts of an objective that makes answers.
  AnswerBatches(const plan::TrainingSpec& spec, runtime::Executor& executor)
      : spec_(spec), executor_(executor) {}

  // Into how many micro-batches these answers are packed.
  int64_t micro_batches_of(std::span<const PackedAnswer> answers) const {
    return std::ssize(begins_of(answers));
  }
  // Packs these answers, which must stay in their place, in their order, into so many micro-batches
  // at least; the last ones may be empty.
  void pack(std::vector<PackedAnswer> answers, int64_t least);

  int64_t count() const { return std::ssize(begins_); }

  // Fills the batch tensors of a program that learns from a micro-batch.
  void load(program::ProgramName program, int64_t micro) const;
  // Runs a program that makes log-probabilities of the tokens of a micro-batch, the tensor `result`
  // (tokens), and returns those of the ids of each of its answers.
  std::vector<std::vector<float>> log_probabilities(program::ProgramName program,
                                                    std::string_view result, int64_t micro) const;
  // The answers of a micro-batch are [first_answer(micro), first_answer(micro + 1)).
  int64_t first_answer(int64_t micro) const {
    return micro < count() ? begins_[static_cast<size_t>(micro)] : std::ssize(answers_);
  }

 private:
  std::span<const PackedAnswer> answers_of(int64_t micro) const {
    const auto first = static_cast<size_t>(first_answer(micro));
    return std::span(answers_).subspan(first, static_cast<size_t>(first_answer(micro + 1)) - first);
  }
  std::vector<int64_t> begins_of(std::span<const PackedAnswer> answers) const;
  void load_tokens(program::ProgramName program, int64_t micro) const;
  void load_numbers(program::ProgramName program, int64_t micro) const;

  const plan::TrainingSpec& spec_;
  runtime::Executor& executor_;
  std::vector<PackedAnswer> answers_;
  std::vector<int64_t> begins_;  // the first answer of each micro-batch
};

}  // namespace snug::train
