// What of a run's curves is looked at first: its loss and its rewards, in training and evaluation.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "report/metrics_curves.h"

namespace snug::report {

struct Headline {
  std::string_view key;
  std::string_view column;   // in a table of runs
  std::string_view words;    // next to other figures
  bool is_greatest = false;  // the best value is the greatest, not the least
};

inline constexpr std::array<Headline, 4> kHeadlines{
    {{.key = "loss", .column = "loss", .words = "loss"},
     {.key = "eval_loss", .column = "evaluation", .words = "loss of the evaluation data"},
     {.key = "reward", .column = "reward", .words = "reward", .is_greatest = true},
     {.key = "eval_reward",
      .column = "evaluated reward",
      .words = "reward of the evaluation data",
      .is_greatest = true}}};

// The curve of a headline, if it has a number; null otherwise.
const MetricsCurve* curve_of(const MetricsCurves& curves, const Headline& headline);

double best_of(const MetricsCurve& curve, const Headline& headline);

}  // namespace snug::report
