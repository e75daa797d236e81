// The curves of a run: what its metrics.jsonl records of each key, whatever keys there are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace snug::report {

// What lines recorded of one key; lines without the key are no points of the curve, and no gaps.
struct MetricsCurve {
  std::string key;
  std::vector<double> steps;
  std::vector<double> values;  // one for each step; NaN where the line has null

  double last() const;      // the last value that is a number; NaN without one
  double least() const;     // of those that are numbers; NaN without one
  double greatest() const;  // likewise
};

struct MetricsCurves {
  std::vector<MetricsCurve> curves;  // those of earlier lines first; of one line by their names
  int64_t last_step = 0;
  int64_t unreadable = 0;  // lines that are not a JSON object with a step

  // Null where no line has the key.
  const MetricsCurve* find(std::string_view key) const;
};

// A curve with more points than a screen can show loses every second one while the file is read.
inline constexpr size_t kMaxCurvePoints = 4000;

// Throws UserError where the file cannot be read.
MetricsCurves read_metrics(const std::filesystem::path& path);

// The values with each replaced by a mean in which those before it weigh the less the older they
// are: of about `window` values. The first values are no nearer to zero for it. NaN stays NaN and
// counts for nothing.
std::vector<double> smoothed(const std::vector<double>& values, double window);

}  // namespace snug::report
