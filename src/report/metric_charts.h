// Charts of what a run recorded: one for each key of its training, with a smoothed line over what
// varies from step to step, and one for each measure of its evaluations, with a line for each
// evaluation set. Several runs share the charts of the keys that they have.
#pragma once

#include <span>
#include <string>

#include "report/html.h"
#include "report/metrics_curves.h"

namespace snug::report {

struct ChartedRun {
  std::string name;  // in legends; empty for a page of one run
  const MetricsCurves* curves = nullptr;
};

// Adds a heading and a chart for each key that can be drawn.
void add_metric_charts(std::span<const ChartedRun> runs, Page& page);

// A value as charts and tables show it.
std::string metric_text(double value);

}  // namespace snug::report
