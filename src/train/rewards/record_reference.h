// What of a record answers to it are held against.
#pragma once

#include <set>
#include <string>

#include "train/rewards/rewarded_answer.h"

namespace snug::train {

// One thread.
class RecordReference {
 public:
  // `function`: for messages. `field`: of the record, or a path of names and places ("meta.gold",
  // "answers.0"); empty: `answer`, else the first of solution, completion, output, ground_truth and
  // target that is there, else the answer that the record holds by its form.
  RecordReference(std::string function, std::string field)
      : function_(std::move(function)), field_(std::move(field)) {}

  // The text, as valid UTF-8; of a number, true or false what JSON writes. Throws UserError, at the
  // record, where there is none. What is taken in place of `answer` is said once.
  std::string of(const RewardedRecord& record) const;

 private:
  void tell(const std::string& taken) const;

  std::string function_;
  std::string field_;
  mutable std::set<std::string> told_;
};

}  // namespace snug::train
