#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cmath>

#include "base/console.h"
#include "train/progress_line.h"

namespace snug::train {
namespace {

// A line that moves more often than this cannot be read.
constexpr std::chrono::milliseconds kBetweenMoves{100};

int64_t terminal_columns() {
  constexpr int64_t kUsual = 80;
  struct winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

Progress::Progress(int64_t first_step, int64_t total_steps, double planned_step_seconds)
    : first_step_(first_step),
      total_steps_(total_steps),
      planned_step_seconds_(planned_step_seconds),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      shown_(start_ - kBetweenMoves) {}

double Progress::seconds_left(const StepMetrics& metrics) const {
  const std::chrono::duration<double> elapsed = Clock::now() - start_;
  const auto done = static_cast<double>(metrics.step - first_step_);
  return elapsed.count() / done * static_cast<double>(total_steps_ - metrics.step);
}

void Progress::show(const StepMetrics& metrics, bool is_logged) {
  if (terminal_)
    show_moving(metrics, is_logged);
  else if (is_logged)
    show_plain(metrics);
}

void Progress::show_moving(const StepMetrics& metrics, bool is_logged) {
  constexpr double kNewest = 0.1;
  recent_step_seconds_ +=
      (recent_step_seconds_ > 0 ? kNewest : 1) * (metrics.step_seconds - recent_step_seconds_);
  const bool is_last = metrics.step == total_steps_;
  const Clock::time_point now = Clock::now();
  if (!is_last && !is_logged && now - shown_ < kBetweenMoves) return;
  shown_ = now;
  const ProgressState state{
      .total_steps = total_steps_,
      .seconds_left = seconds_left(metrics),
      .planned_share = recent_step_seconds_ > 0 ? planned_step_seconds_ / recent_step_seconds_ : 0};
  std::array<char, 1024> buffer{};
  constexpr std::string_view kClear = "\r\x1b[2K";
  char* const begin = kClear.copy(buffer.data(), kClear.size()) + buffer.data();
  // A line as wide as the terminal would leave the cursor in the next one.
  const std::string_view line = progress_line(metrics, state, terminal_columns() - 1,
                                              {begin, buffer.size() - kClear.size() - 1});
  size_t size = kClear.size() + line.size();
  if (is_last) buffer[size++] = '\n';
  base::write_to_console({buffer.data(), size});
}

void Progress::show_plain(const StepMetrics& metrics) const {
  const int64_t eta = std::llround(seconds_left(metrics));
  std::array<char, 512> line{};
  char* out = line.data();
  char* const end = out + line.size() - 1;
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
    if (is_shown_measure(metrics, i))
      out = fmt::format_to_n(out, end - out, " {} {:.4f}", metrics.measure_names[i],
                             metrics.measures[i])
                .out;
  for (const NamedMeasure& measure : metrics.of_data)
    if (measure.is_shown)
      out = fmt::format_to_n(out, end - out, " {} {:.4f}", measure.name, measure.value).out;
  *out++ = '\n';
  base::write_to_console({line.data(), static_cast<size_t>(out - line.data())});
}

void Progress::note(std::string_view line) const {
  if (terminal_) base::write_to_console("\r\x1b[2K");
  base::write_to_console(line);
  base::write_to_console("\n");
}

}  // namespace snug::train
