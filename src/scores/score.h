// What an answer is worth next to a reference, as a number: the metrics of an evaluation, and what
// learning from rewards rewards. Each is a row of a table (score_table.cpp, docs/evaluation.md).
// Scores are immutable; their functions may be called from any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "scores/scored_answer.h"

namespace snug::scores {

// How a score judges. A text comes here without white space at its ends, as valid UTF-8.
struct Judge {
  std::function<double(std::string_view answer, std::string_view reference)> one;
  // The figure of all answers, for scores of which it is not the mean.
  std::function<double(std::span<const ScoredAnswer> answers)> all{};
  // What keeps a text from being a reference; empty where nothing does.
  std::function<std::string(std::string_view reference)> problem{};
};

class Score {
 public:
  Score(std::string name, bool needs_reference, Judge judge)
      : name_(std::move(name)), needs_reference_(needs_reference), judge_(std::move(judge)) {}

  // As it was written, with its argument: "regex:(\d+)".
  const std::string& name() const { return name_; }
  // Without, the reference is not looked at.
  bool needs_reference() const { return needs_reference_; }
  // Whether the figure of several answers is the mean of their scores.
  bool is_mean() const { return !judge_.all; }

  // The functions below require valid UTF-8. White space at the ends of texts never counts. An
  // answer on which a regular expression gives up scores 0, which is said the first time; where it
  // gives up on a reference, they throw UserError.
  double of(std::string_view answer, std::string_view reference) const;
  // Of several answers, at least one.
  double of_all(std::span<const ScoredAnswer> answers) const;

  // Why a text cannot be what answers are held against ("has no number"); empty where it can. To be
  // asked of all references before the first answer is made.
  std::string problem_of(std::string_view reference) const;

 private:
  std::string name_;
  bool needs_reference_;
  Judge judge_;
};

}  // namespace snug::scores
