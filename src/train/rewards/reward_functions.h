// What answers are rewarded by: the functions that recipe.rewards names, each a score (src/scores),
// a program of the user's (reward_program.h), or a penalty of the length in tokens
// (soft_overlong.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "train/rewards/reward_function.h"
#include "train/rewards/rewarded_answer.h"

namespace snug::train {

// One thread. Programs are started when they are first asked, and ended with it.
class RewardFunctions {
 public:
  // Throws UserError, at the key, for functions that there are not, for arguments that are wrong,
  // and for reward_fields of functions that are not asked for or have no reference. What programs
  // write to standard error goes to the run's folder, if the recipe has one and it is there.
  explicit RewardFunctions(const formats::Recipe& recipe);

  // Names of metrics: as they are written, without weights, and without what is behind a colon
  // where no other has the same name in front of it.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<double>& weights() const { return weights_; }

  // Throws UserError, at the record, where it lacks what a function holds answers against, or a
  // function cannot compare answers with it. To be asked of all records before the first answer.
  void check(const RewardedRecord& record) const;

  // The rewards (answers, functions), row-major, without weights; no number (NaN) where a function
  // says nothing. Throws UserError where a program fails twice.
  std::vector<double> judge(std::span<const RewardedAnswer> answers);

 private:
  std::vector<std::string> names_;
  std::vector<double> weights_;
  std::vector<std::unique_ptr<RewardFunction>> functions_;
};

}  // namespace snug::train
