#include "report/run_page.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock_text.h"
#include "report/answer_samples.h"
#include "report/headlines.h"
#include "report/metric_charts.h"
#include "report/plan_page.h"

namespace snug::report {
namespace {

constexpr int kReloadSeconds = 30;

void add_comparison(const plan::PlanDocument& planned, const plan::Measured& measured, Page& page) {
  std::vector<std::vector<std::string>> rows{{"", "planned", "measured", "ratio"}};
  for (const plan::ComparedFigure& each : plan::compared_figures(planned, measured))
    rows.push_back({each.name, each.planned, each.measured, each.ratio});
  page.heading("Planned and measured");
  page.table(rows);
}

std::vector<Figure> headline_figures(const MetricsCurves& metrics) {
  std::vector<Figure> figures;
  for (const Headline& headline : kHeadlines)
    if (const MetricsCurve* curve = curve_of(metrics, headline))
      figures.push_back(
          {std::string(headline.words), fmt::format("{} (best {})", metric_text(curve->last()),
                                                    metric_text(best_of(*curve, headline)))});
  return figures;
}

// Of the steps that were done lately; 0 where none says how long it took.
double recent_step_seconds(const MetricsCurves& metrics) {
  constexpr double kSteps = 20;
  const MetricsCurve* curve = metrics.find("step_seconds");
  if (curve == nullptr || curve->values.empty()) return 0;
  const double seconds = smoothed(curve->values, kSteps).back();
  return std::isfinite(seconds) ? seconds : 0;
}

void add_progress(const RunProgress& progress, const plan::PlanDocument& planned,
                  const MetricsCurves& metrics, Page& page) {
  // An error is a sentence or more, and no figure.
  constexpr size_t kShortState = 40;
  std::vector<Figure> figures;
  if (progress.state.size() > kShortState)
    page.paragraph(progress.state);
  else
    figures.push_back({"state", progress.state});
  figures.push_back({"step", fmt::format("{} of {}", metrics.last_step, progress.total_steps)});
  for (Figure& figure : headline_figures(metrics)) figures.push_back(std::move(figure));
  if (const double seconds = recent_step_seconds(metrics); seconds > 0) {
    figures.push_back({"a step", plan::readable_seconds(seconds)});
    if (planned.step_seconds > 0)
      figures.push_back(
          {"of the planned speed", fmt::format("{:.0f} %", 100 * planned.step_seconds / seconds)});
    const auto left = static_cast<double>(progress.total_steps - metrics.last_step);
    if (progress.goes_on)
      figures.push_back({"left", std::string(base::ClockText(left * seconds).view())});
  }
  figures.push_back({"this page was written", progress.written_at});
  page.figures(figures);
}

void add_curves(const MetricsCurves& metrics, Page& page) {
  const std::array runs{ChartedRun{"", &metrics}};
  add_metric_charts(runs, page);
}

}  // namespace

RunPage::RunPage(const plan::PlannedTraining& planned, std::filesystem::path metrics,
                 std::filesystem::path samples)
    : document_(planned.document),
      metrics_(std::move(metrics)),
      samples_(std::move(samples)),
      plan_("") {
  plan_.heading("The plan");
  add_plan(planned, plan_);
}

std::string RunPage::finished(const plan::Measured& measured) const {
  const MetricsCurves metrics = read_metrics(metrics_);
  Page page(title_of(document_));
  std::vector<Figure> figures{{"steps", std::to_string(metrics.last_step)}};
  for (Figure& figure : headline_figures(metrics)) figures.push_back(std::move(figure));
  page.figures(figures);
  add_comparison(document_, measured, page);
  add_curves(metrics, page);
  add_answer_samples(samples_, page);
  page.append(plan_);
  return page.text();
}

std::string RunPage::unfinished(const RunProgress& progress) const {
  const MetricsCurves metrics = read_metrics(metrics_);
  Page page(title_of(document_));
  if (progress.goes_on) page.reload_after(kReloadSeconds);
  add_progress(progress, document_, metrics, page);
  add_curves(metrics, page);
  add_answer_samples(samples_, page);
  page.append(plan_);
  return page.text();
}

}  // namespace snug::report
