#include "train/step_metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace snug::train {
namespace {

// The measures of an objective that its users look at.
constexpr std::string_view kShownMeasures = "rewards/";

// JSON has no NaN or infinity; a number that is none becomes null.
void append_number(std::string& line, double value) {
  if (std::isfinite(value))
    fmt::format_to(std::back_inserter(line), "{}", value);
  else
    line += "null";
}

// A name in JSON: that of a reward may have a pattern in it.
void append_name(std::string& line, std::string_view name) {
  line += '"';
  for (const char each : name) {
    if (each == '"' || each == '\\') line += '\\';
    if (static_cast<unsigned char>(each) < ' ')
      fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<int>(each));
    else
      line += each;
  }
  line += '"';
}

}  // namespace

bool is_shown_measure(const StepMetrics& metrics, size_t measure) {
  return metrics.measure_names[measure].starts_with(kShownMeasures) &&
         !std::isnan(metrics.measures[measure]);
}

void write_json(const StepMetrics& metrics, std::string& line) {
  const auto field = [&](std::string_view name, double value) {
    line += ',';
    append_name(line, name);
    line += ':';
    append_number(line, value);
  };
  line.clear();
  fmt::format_to(std::back_inserter(line), "{{\"step\":{}", metrics.step);
  field("epoch", metrics.epoch);
  field("loss", metrics.loss);
  if (metrics.aux_loss) field("aux_loss", *metrics.aux_loss);
  field("grad_norm", metrics.grad_norm);
  field("learning_rate", metrics.learning_rate);
  if (metrics.loss_scale) {
    field("loss_scale", *metrics.loss_scale);
    field("skipped_steps", static_cast<double>(metrics.skipped_steps));
  }
  for (size_t i = 0; i < metrics.measure_names.size(); ++i)
    if (!std::isnan(metrics.measures[i]))
      field(metrics.measure_names[i], static_cast<double>(metrics.measures[i]));
  for (const NamedMeasure& measure : metrics.of_data)
    if (!std::isnan(measure.value)) field(measure.name, measure.value);
  field("tokens_per_second", metrics.tokens_per_second);
  field("step_seconds", metrics.step_seconds);
  fmt::format_to(std::back_inserter(line),
                 ",\"tokens\":{},\"trained_tokens\":{},\"resident_bytes\":{}}}", metrics.tokens,
                 metrics.trained_tokens, metrics.resident_bytes);
}

}  // namespace snug::train
