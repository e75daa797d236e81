// The answers that a run asks for in an evaluation, with the weights as they are, and what they are
// worth. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/time/rates.h"
#include "train/answer_sample.h"

namespace snug::train {

class EvaluatedAnswers {
 public:
  EvaluatedAnswers() = default;
  virtual ~EvaluatedAnswers() = default;
  EvaluatedAnswers(const EvaluatedAnswers&) = delete;
  EvaluatedAnswers& operator=(const EvaluatedAnswers&) = delete;
  EvaluatedAnswers(EvaluatedAnswers&&) = delete;
  EvaluatedAnswers& operator=(EvaluatedAnswers&&) = delete;

  // Asks all sets. What training has in memory that it shares with generation is gone afterwards,
  // so that no step may be under way.
  virtual void run() = 0;

  // The names of what is measured of each set, as metrics have them.
  virtual const std::vector<std::string>& names() const = 0;
  // Whether the terminal shows the figure of this name too.
  virtual bool is_shown(size_t /*name*/) const { return true; }

  // These tell of the last run.
  // Of a set, for each name; no number where there is nothing to take a mean of.
  virtual std::vector<double> figures(size_t set) const = 0;
  // Some answers, with what each of sample_names() says of them.
  virtual std::vector<AnswerSample> samples() const = 0;
  virtual const std::vector<std::string>& sample_names() const = 0;
  // How long the answers took to make.
  virtual double seconds() const = 0;
  // Says how long a part of it took next to what was planned at these rates, where that is known.
  virtual void say_speed(const plan::Rates& /*rates*/) const {}
};

}  // namespace snug::train
