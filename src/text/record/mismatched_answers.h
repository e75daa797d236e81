// Each prompt with the answer of another example, as TRL's KTOTrainer makes them: within a batch of
// consecutive examples each takes the answer of the one before it, the first that of the last.
// Where records are pairs of answers, the examples are all that were chosen, then all that were
// rejected, 1000 records at a time (TRL's unpair_preference_dataset).
//
// An example is given out when the answer that it takes is known: the first of a batch as its last
// one. A last batch of a single example takes the answer of the example before it. Holds what
// max_length asks for of three examples in memory, and of what was rejected of 1000 pairs in a
// file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "text/record/preference_pair.h"
#include "text/row/document_store.h"

namespace snug::text {

class MismatchedAnswers {
 public:
  // Takes an example, cut to a prompt and max_length tokens of an answer, and its prompt with the
  // answer of another, cut to max_length.
  using Take = std::function<void(const LabelledAnswer& example, const Document& mismatched)>;

  static constexpr int64_t kPairsAtOnce = 1000;

  // `batch`: examples of a batch, at least 2; 0: all are one.
  MismatchedAnswers(int64_t batch, int64_t max_length, Take take);

  // The answers of the next record: one, or the two of a pair. Requires that their prompt has fewer
  // than `max_length` tokens.
  void add(std::vector<LabelledAnswer> answers);
  // After the last one. Throws UserError where there is but one example.
  void finish();

 private:
  using Ids = std::vector<int32_t>;

  void add_example(LabelledAnswer example);
  void add_rejected();
  void end_batch();
  void give_out(const LabelledAnswer& example, const Ids& answer) const;

  int64_t batch_;
  int64_t max_length_;
  Take take_;
  std::optional<LabelledAnswer> first_;  // of the batch
  Ids last_;                             // the answer of the last example
  Ids before_;                           // and of the last one before the batch
  int64_t held_ = 0;                     // examples of the batch
  std::optional<DocumentStore> rejected_;
  int64_t pairs_ = 0;  // of which they are
};

}  // namespace snug::text
