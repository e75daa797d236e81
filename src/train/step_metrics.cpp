#include "train/step_metrics.h"

#include <fmt/format.h>

#include <cmath>

namespace snug::train {
namespace {

// The measures of an objective that its users look at.
constexpr std::string_view kShownMeasures = "rewards/";

// JSON has no NaN or infinity; a number that is none becomes null.
char* number(char* out, char* end, double value) {
  if (!std::isfinite(value)) return fmt::format_to_n(out, end - out, "null").out;
  return fmt::format_to_n(out, end - out, "{}", value).out;
}

}  // namespace

bool is_shown_measure(const StepMetrics& metrics, size_t measure) {
  return metrics.measure_names[measure].starts_with(kShownMeasures) &&
         !std::isnan(metrics.measures[measure]);
}

std::string_view to_json(const StepMetrics& metrics, char* buffer, int64_t size) {
  char* out = buffer;
  char* const end = buffer + size;
  const auto field = [&](std::string_view name, double value) {
    out = fmt::format_to_n(out, end - out, "{}\"{}\":", out == buffer ? '{' : ',', name).out;
    out = number(out, end, value);
  };
  out = fmt::format_to_n(out, end - out, "{{\"step\":{}", metrics.step).out;
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
  out = fmt::format_to_n(out, end - out,
                         ",\"tokens\":{},\"trained_tokens\":{},\"resident_bytes\":{}}}",
                         metrics.tokens, metrics.trained_tokens, metrics.resident_bytes)
            .out;
  return {buffer, static_cast<size_t>(out - buffer)};
}

}  // namespace snug::train
