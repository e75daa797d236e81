#include "report/run_page.h"

#include <fmt/format.h>

#include <array>
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

struct Curve {
  const char* key;
  const char* name;
  int colour;
};
constexpr std::array kCurves{Curve{"loss", "Loss", 0},
                             Curve{"learning_rate", "Learning rate", 6},
                             Curve{"grad_norm", "Norm of the gradient", 3},
                             Curve{"tokens_per_second", "Tokens per second", 5},
                             Curve{"rewards/accuracies", "Pairs with a reward margin above 0", 1},
                             Curve{"rewards/margins", "Reward margin", 2},
                             Curve{"eval_loss", "Loss of the evaluation data", 9}};

struct Points {
  std::vector<double> steps;
  std::array<std::vector<double>, kCurves.size()> values;
};

// When a curve has more points than a screen can show, every second one is dropped while the file
// is read.
constexpr size_t kMaxPoints = 4000;

void thin(std::vector<double>& values) {
  for (size_t i = 0; 2 * i < values.size(); ++i) values[i] = values[2 * i];
  values.resize((values.size() + 1) / 2);
}

Points read_points(const std::filesystem::path& path) {
  std::ifstream lines(path);
  if (!lines) base::throw_user_error("{} cannot be read", path.string());
  Points points;
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
    for (size_t i = 0; i < kCurves.size(); ++i)
      points.values[i].push_back(
          fields.number_or(kCurves[i].key, std::numeric_limits<double>::quiet_NaN()));
    if (points.steps.size() < kMaxPoints) continue;
    thin(points.steps);
    for (std::vector<double>& values : points.values) thin(values);
    stride *= 2;
  }
  return points;
}

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

void add_curves(const Points& points, Page& page) {
  for (size_t i = 0; i < kCurves.size(); ++i) {
    const std::string chart = line_chart({.x = points.steps,
                                          .y = points.values[i],
                                          .colour = kCurves[i].colour,
                                          .text_of_x = number_text,
                                          .text_of_y = number_text});
    if (chart.empty()) continue;
    page.heading(kCurves[i].name);
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
                     const std::filesystem::path& metrics) {
  Page page(title_of(planned.document));
  add_comparison(planned.document, measured, page);
  add_curves(read_points(metrics), page);
  page.heading("The plan");
  add_plan(planned, page);
  return page.text();
}

}  // namespace snug::report
