#include "report/metrics_curves.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace snug::report {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
// No run records so many keys; a file that does is not one of metrics.
constexpr size_t kMaxCurves = 1000;

void drop_every_second(std::vector<double>& values) {
  for (size_t i = 0; 2 * i < values.size(); ++i) values[i] = values[2 * i];
  values.resize((values.size() + 1) / 2);
}

class CurvesReader {
 public:
  void add_line(const std::string& line, const std::string& file) {
    nlohmann::json record;
    try {
      record = base::parse_json(line, file);
    } catch (const base::UserError&) {
    }
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) {
      ++read_.unreadable;
      return;
    }
    const auto step = record["step"].get<int64_t>();
    read_.last_step = std::max(read_.last_step, step);
    for (const auto& [key, value] : record.items()) {
      if (key == "step" || !(value.is_number() || value.is_null())) continue;
      add_point(key, static_cast<double>(step), value.is_null() ? kNoNumber : value.get<double>());
    }
  }

  MetricsCurves take() { return std::move(read_); }

 private:
  struct Thinning {
    size_t curve = 0;
    int64_t seen = 0;
    int64_t stride = 1;
  };

  void add_point(const std::string& key, double step, double value) {
    if (read_.curves.size() >= kMaxCurves && !known_.contains(key)) return;
    const auto [entry, is_new] = known_.try_emplace(key, Thinning{read_.curves.size()});
    if (is_new) read_.curves.push_back({key, {}, {}});
    Thinning& thinning = entry->second;
    if (thinning.seen++ % thinning.stride != 0) return;
    MetricsCurve& curve = read_.curves[thinning.curve];
    curve.steps.push_back(step);
    curve.values.push_back(value);
    if (curve.steps.size() < kMaxCurvePoints) return;
    drop_every_second(curve.steps);
    drop_every_second(curve.values);
    thinning.stride *= 2;
  }

  MetricsCurves read_;
  std::map<std::string, Thinning> known_;
};

}  // namespace

double MetricsCurve::last() const {
  for (size_t i = values.size(); i-- > 0;)
    if (std::isfinite(values[i])) return values[i];
  return kNoNumber;
}

double MetricsCurve::least() const {
  double least = kNoNumber;
  for (const double value : values)
    if (std::isfinite(value) && !(value >= least)) least = value;
  return least;
}

double MetricsCurve::greatest() const {
  double greatest = kNoNumber;
  for (const double value : values)
    if (std::isfinite(value) && !(value <= greatest)) greatest = value;
  return greatest;
}

const MetricsCurve* MetricsCurves::find(std::string_view key) const {
  const auto found = std::ranges::find(curves, key, &MetricsCurve::key);
  return found == curves.end() ? nullptr : &*found;
}

MetricsCurves read_metrics(const std::filesystem::path& path) {
  std::ifstream lines(path);
  if (!lines) base::throw_user_error("{} cannot be read", path.string());
  CurvesReader reader;
  for (std::string line; std::getline(lines, line);) reader.add_line(line, path.string());
  return reader.take();
}

std::vector<double> smoothed(const std::vector<double>& values, double window) {
  const double kept = 1 - 1 / std::max(1.0, window);
  double sum = 0;
  double weight = 0;
  std::vector<double> means;
  means.reserve(values.size());
  for (const double value : values) {
    if (!std::isfinite(value)) {
      means.push_back(kNoNumber);
      continue;
    }
    sum = kept * sum + value;
    weight = kept * weight + 1;
    means.push_back(sum / weight);
  }
  return means;
}

}  // namespace snug::report
