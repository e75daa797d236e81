#include "report/metric_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "report/charts.h"

namespace snug::report {
namespace {

constexpr std::string_view kEvaluation = "eval_";
constexpr int kColourOfEvaluation = 9;
// Next to each other easily told apart.
constexpr std::array kColoursOfLines{0, 2, 3, 5, 6, 9, 12, 7};
// Fewer points than these show what they are without a smoothed line.
constexpr size_t kSmoothedPoints = 20;
constexpr double kShareOfWindow = 1.0 / 30;
constexpr double kLeastWindow = 5;
// More marks than these would lie on each other.
constexpr size_t kMaxMarks = 200;

// A key as people read it. Other keys are shown by their names.
struct KnownKey {
  std::string_view key;
  std::string_view name;
  int colour = 0;
  bool is_exact = false;  // does not vary by chance, so that nothing is to be smoothed
};
constexpr std::array kKnownKeys{
    KnownKey{"loss", "Loss", 0},
    KnownKey{"learning_rate", "Learning rate", 6, true},
    KnownKey{"grad_norm", "Norm of the gradient", 3},
    KnownKey{"tokens_per_second", "Tokens per second", 5},
    KnownKey{"aux_loss", "Loss that balances experts", 4},
    KnownKey{"rewards/accuracies", "Pairs with a reward margin above 0", 1},
    KnownKey{"rewards/margins", "Reward margin", 2},
    KnownKey{"loss_scale", "Loss scale", 7, true},
    KnownKey{"skipped_steps", "Steps skipped by the loss scale", 10, true},
    KnownKey{"perplexity", "Perplexity", 9},
    KnownKey{"accuracy", "Share of tokens that are the likeliest", 9}};
// What other charts show, or what does not change.
constexpr std::array<std::string_view, 5> kNotDrawn{"epoch", "step_seconds", "tokens",
                                                    "trained_tokens", "resident_bytes"};

KnownKey known_key(std::string_view key) {
  const auto found = std::ranges::find(kKnownKeys, key, &KnownKey::key);
  return found == kKnownKeys.end() ? KnownKey{key, key, 12} : *found;
}

int colour_of_line(size_t line) { return kColoursOfLines[line % kColoursOfLines.size()]; }

bool is_of_evaluation(std::string_view key) { return key.starts_with(kEvaluation); }

void add_once(std::vector<std::string>& names, std::string_view name) {
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

// The keys of the training, the known ones first.
std::vector<std::string> training_keys(std::span<const ChartedRun> runs) {
  std::vector<std::string> keys;
  for (const KnownKey& known : kKnownKeys)
    for (const ChartedRun& run : runs)
      if (run.curves->find(known.key) != nullptr) add_once(keys, known.key);
  for (const ChartedRun& run : runs)
    for (const MetricsCurve& curve : run.curves->curves)
      if (!is_of_evaluation(curve.key) && std::ranges::count(kNotDrawn, curve.key) == 0)
        add_once(keys, curve.key);
  return keys;
}

// eval_NAME_loss next to eval_loss is the loss of the evaluation set NAME; of a run that learns
// from rewards it is the reward.
std::vector<std::string> evaluation_sets(const MetricsCurves& curves) {
  std::vector<std::string> sets;
  for (const std::string_view measure : {"loss", "reward"}) {
    if (curves.find(fmt::format("{}{}", kEvaluation, measure)) == nullptr) continue;
    const std::string ending = fmt::format("_{}", measure);
    for (const MetricsCurve& curve : curves.curves)
      if (is_of_evaluation(curve.key) && curve.key.ends_with(ending) &&
          curve.key.size() > kEvaluation.size() + ending.size())
        sets.push_back(curve.key.substr(kEvaluation.size(),
                                        curve.key.size() - kEvaluation.size() - ending.size()));
  }
  return sets;
}

// Of eval_MEASURE or eval_SET_MEASURE.
struct EvaluationKey {
  std::string set;  // empty: of all sets together
  std::string measure;
};

EvaluationKey evaluation_key(std::string_view key, const std::vector<std::string>& sets) {
  EvaluationKey found{"", std::string(key.substr(kEvaluation.size()))};
  // A set may have another's name as the beginning of its own: the longest name counts.
  for (const std::string& set : sets) {
    const std::string_view rest = key.substr(kEvaluation.size());
    if (!rest.starts_with(set + "_") || set.size() < found.set.size()) continue;
    found = {set, std::string(rest.substr(set.size() + 1))};
  }
  return found;
}

std::string joined(const std::string& run, std::string_view what) {
  if (run.empty()) return std::string(what);
  return what.empty() ? run : fmt::format("{}: {}", run, what);
}

Line line_of(const MetricsCurve& curve, std::string name, int colour) {
  return {.name = std::move(name), .x = curve.steps, .y = curve.values, .colour = colour};
}

Line evaluation_line(const MetricsCurve& curve, std::string name, int colour) {
  Line line = line_of(curve, std::move(name), colour);
  line.has_marks = curve.steps.size() <= kMaxMarks;
  return line;
}

// The raw line and the smoothed one over it, or the raw one alone.
void add_training_lines(const MetricsCurve& curve, const std::string& name, int colour,
                        std::vector<Line>& lines) {
  const size_t points = curve.values.size();
  lines.push_back(line_of(curve, name, colour));
  if (known_key(curve.key).is_exact || points < kSmoothedPoints) return;
  Line mean = lines.back();
  lines.back().is_faint = true;
  lines.back().name.clear();
  mean.y =
      smoothed(curve.values, std::max(kLeastWindow, static_cast<double>(points) * kShareOfWindow));
  lines.push_back(std::move(mean));
}

void add_chart(std::string_view heading, std::vector<Line> lines, Page& page) {
  const std::string chart =
      line_chart({.lines = std::move(lines),
                  .whole_x = true,
                  .text_of_x = [](double x) { return fmt::format("{:.0f}", x); },
                  .text_of_y = metric_text});
  if (chart.empty()) return;
  page.heading(heading);
  page.chart(chart);
}

void add_training_chart(const std::string& key, std::span<const ChartedRun> runs, Page& page) {
  std::vector<Line> lines;
  for (size_t i = 0; i < runs.size(); ++i) {
    const int colour = runs.size() > 1 ? colour_of_line(i) : known_key(key).colour;
    const MetricsCurve* curve = runs[i].curves->find(key);
    if (curve == nullptr) continue;
    const MetricsCurve* evaluation =
        runs.size() == 1 ? runs[i].curves->find(fmt::format("{}{}", kEvaluation, key)) : nullptr;
    add_training_lines(*curve, joined(runs[i].name, evaluation != nullptr ? "training" : ""),
                       colour, lines);
    if (evaluation != nullptr)
      lines.push_back(evaluation_line(*evaluation, "evaluation", kColourOfEvaluation));
  }
  add_chart(known_key(key).name, std::move(lines), page);
}

void add_evaluation_charts(std::span<const ChartedRun> runs, Page& page) {
  std::vector<std::pair<std::string, std::vector<Line>>> charts;  // by measure
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<std::string> sets = evaluation_sets(*runs[i].curves);
    for (const MetricsCurve& curve : runs[i].curves->curves) {
      if (!is_of_evaluation(curve.key)) continue;
      const EvaluationKey key = evaluation_key(curve.key, sets);
      auto chart = std::ranges::find(charts, key.measure, &decltype(charts)::value_type::first);
      if (chart == charts.end()) chart = charts.insert(charts.end(), {key.measure, {}});
      const int colour = runs.size() == 1 && key.set.empty() ? kColourOfEvaluation
                                                             : colour_of_line(chart->second.size());
      const std::string what = key.set.empty() && !sets.empty() ? "all sets" : key.set;
      chart->second.push_back(evaluation_line(curve, joined(runs[i].name, what), colour));
    }
  }
  for (auto& [measure, lines] : charts)
    add_chart(fmt::format("{} of the evaluation data", known_key(measure).name), std::move(lines),
              page);
}

}  // namespace

void add_metric_charts(std::span<const ChartedRun> runs, Page& page) {
  const std::vector<std::string> keys = training_keys(runs);
  for (const std::string& key : keys) {
    add_training_chart(key, runs, page);
    if (key == "loss") add_evaluation_charts(runs, page);
  }
  if (std::ranges::find(keys, "loss") == keys.end()) add_evaluation_charts(runs, page);
}

std::string metric_text(double value) { return fmt::format("{:.4g}", value); }

}  // namespace snug::report
