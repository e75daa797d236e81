#include "report/run_page.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "report/charts.h"
#include "report/html.h"
#include "report/plan_page.h"

namespace snug::report {
namespace {

constexpr int kColourOfEvaluation = 9;

struct Curve {
  NamedCurve named;
  int colour = 0;
};

std::vector<Curve> curves_with(std::span<const NamedCurve> more) {
  std::vector<Curve> curves{{{"loss", "Loss"}, 0},
                            {{"learning_rate", "Learning rate"}, 6},
                            {{"grad_norm", "Norm of the gradient"}, 3},
                            {{"tokens_per_second", "Tokens per second"}, 5},
                            {{"rewards/accuracies", "Pairs with a reward margin above 0"}, 1},
                            {{"rewards/margins", "Reward margin"}, 2},
                            {{"eval_loss", "Loss of the evaluation data"}, kColourOfEvaluation}};
  for (const NamedCurve& curve : more) curves.push_back({curve, kColourOfEvaluation});
  return curves;
}

struct Points {
  std::vector<double> steps;
  std::vector<std::vector<double>> values;  // of each curve
};

// When a curve has more points than a screen can show, every second one is dropped while the file
// is read.
constexpr size_t kMaxPoints = 4000;

void thin(std::vector<double>& values) {
  for (size_t i = 0; 2 * i < values.size(); ++i) values[i] = values[2 * i];
  values.resize((values.size() + 1) / 2);
}

Points read_points(const std::filesystem::path& path, const std::vector<Curve>& curves) {
  std::ifstream lines(path);
  if (!lines) base::throw_user_error("{} cannot be read", path.string());
  Points points{.steps = {}, .values = std::vector<std::vector<double>>(curves.size())};
  int64_t number = 0;
  int64_t stride = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    if (number % stride != 0) continue;
    nlohmann::json record;
    try {
      record = base::parse_json(line, path.string());
    } catch (const base::UserError&) {
      continue;
    }
    const base::JsonObject fields(record, path.string());
    points.steps.push_back(fields.number_or("step", std::numeric_limits<double>::quiet_NaN()));
    for (size_t i = 0; i < curves.size(); ++i)
      points.values[i].push_back(
          fields.number_or(curves[i].named.key, std::numeric_limits<double>::quiet_NaN()));
    if (points.steps.size() < kMaxPoints) continue;
    thin(points.steps);
    for (std::vector<double>& values : points.values) thin(values);
    stride *= 2;
  }
  return points;
}

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

void add_curves(const std::vector<Curve>& curves, const Points& points, Page& page) {
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::string chart = line_chart({.x = points.steps,
                                          .y = points.values[i],
                                          .colour = curves[i].colour,
                                          .text_of_x = number_text,
                                          .text_of_y = number_text});
    if (chart.empty()) continue;
    page.heading(curves[i].named.name);
    page.chart(chart);
  }
}

void add_comparison(const plan::PlanDocument& planned, const plan::Measured& measured, Page& page) {
  std::vector<std::vector<std::string>> rows{{"", "planned", "measured", "ratio"}};
  for (const plan::ComparedFigure& each : plan::compared_figures(planned, measured))
    rows.push_back({each.name, each.planned, each.measured, each.ratio});
  page.heading("Planned and measured");
  page.table(rows);
}

}  // namespace

std::string run_page(const plan::PlannedTraining& planned, const plan::Measured& measured,
                     const std::filesystem::path& metrics, std::span<const NamedCurve> more) {
  Page page(title_of(planned.document));
  add_comparison(planned.document, measured, page);
  const std::vector<Curve> curves = curves_with(more);
  add_curves(curves, read_points(metrics, curves), page);
  page.heading("The plan");
  add_plan(planned, page);
  return page.text();
}

}  // namespace snug::report
