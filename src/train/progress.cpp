#include "train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/console.h"

namespace snug::train {
namespace {

constexpr int kBarWidth = 24;
// The measures of an objective that its users look at; metrics.jsonl has the rest.
constexpr std::string_view kShownMeasures = "rewards/";

// JSON has no NaN or infinity; a number that is none becomes null.
char* number(char* out, char* end, double value) {
  if (!std::isfinite(value)) return fmt::format_to_n(out, end - out, "null").out;
  return fmt::format_to_n(out, end - out, "{}", value).out;
}

}  // namespace

Progress::Progress(int64_t first_step, int64_t total_steps)
    : first_step_(first_step),
      total_steps_(total_steps),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

void Progress::show(const StepMetrics& metrics) const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const auto done = static_cast<double>(metrics.step - first_step_);
  const auto left = static_cast<double>(total_steps_ - metrics.step);
  const auto eta = static_cast<int64_t>(std::llround(elapsed.count() / done * left));
  std::array<char, 512> line{};
  char* out = line.data();
  char* const end = out + line.size() - 1;
  if (terminal_) {
    const auto filled =
        static_cast<int>(kBarWidth * metrics.step / std::max<int64_t>(1, total_steps_));
    out = fmt::format_to_n(out, end - out, "\r\x1b[2K{:━<{}}{:·<{}} ", "", filled, "",
                           kBarWidth - filled)
              .out;
  }
  out = fmt::format_to_n(out, end - out, "step {}/{} loss {:.4f} ", metrics.step, total_steps_,
                         metrics.loss)
            .out;
  if (metrics.aux_loss)
    out = fmt::format_to_n(out, end - out, "aux_loss {:.4f} ", *metrics.aux_loss).out;
  out = fmt::format_to_n(
            out, end - out, "grad_norm {:.3f} lr {:.2e} {:.0f} tokens/s {:.0f} MiB ETA {}:{:02}",
            metrics.grad_norm, metrics.learning_rate, metrics.tokens_per_second,
            static_cast<double>(metrics.resident_bytes) / (1 << 20), eta / 60, eta % 60)
            .out;
  if (metrics.loss_scale)
    out = fmt::format_to_n(out, end - out, " loss_scale {} skipped {}", *metrics.loss_scale,
                           metrics.skipped_steps)
              .out;
  for (size_t i = 0; i < metrics.measure_names.size(); ++i)
    if (metrics.measure_names[i].starts_with(kShownMeasures) && !std::isnan(metrics.measures[i]))
      out = fmt::format_to_n(out, end - out, " {} {:.4f}", metrics.measure_names[i],
                             metrics.measures[i])
                .out;
  if (!terminal_ || metrics.step == total_steps_) *out++ = '\n';
  base::write_to_console({line.data(), static_cast<size_t>(out - line.data())});
}

void Progress::note(std::string_view line) const {
  if (terminal_) base::write_to_console("\r\x1b[2K");
  base::write_to_console(line);
  base::write_to_console("\n");
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
  field("tokens_per_second", metrics.tokens_per_second);
  field("step_seconds", metrics.step_seconds);
  out = fmt::format_to_n(out, end - out,
                         ",\"tokens\":{},\"trained_tokens\":{},\"resident_bytes\":{}}}",
                         metrics.tokens, metrics.trained_tokens, metrics.resident_bytes)
            .out;
  return {buffer, static_cast<size_t>(out - buffer)};
}

}  // namespace snug::train
