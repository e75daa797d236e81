#include "train/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/clock_text.h"

namespace snug::train {
namespace {

constexpr int64_t kWidestBar = 24;
constexpr int64_t kNarrowestBar = 8;
constexpr std::string_view kDone = "━";
constexpr std::string_view kOpen = "·";

// Parts of a line, as long as there is room for each: where one has none, no later one comes.
class Parts {
 public:
  explicit Parts(int64_t columns) : most_(std::clamp<int64_t>(columns, 0, std::ssize(text_))) {}

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (is_full_) return;
    std::array<char, 96> part{};
    const auto made =
        fmt::format_to_n(part.data(), part.size(), format, std::forward<Args>(args)...);
    const auto length = static_cast<int64_t>(std::min(made.size, part.size()));
    const std::string_view separator = size_ == 0 ? "" : ", ";
    is_full_ = size_ + std::ssize(separator) + length > most_;
    if (is_full_) return;
    append(separator);
    append({part.data(), static_cast<size_t>(length)});
  }

  std::string_view text() const { return {text_.data(), static_cast<size_t>(size_)}; }
  int64_t columns() const { return size_; }  // all of it is ASCII

 private:
  void append(std::string_view text) {
    std::ranges::copy(text, text_.data() + size_);
    size_ += std::ssize(text);
  }

  std::array<char, 512> text_{};
  int64_t most_;
  int64_t size_ = 0;
  bool is_full_ = false;
};

void add_parts(const StepMetrics& metrics, const ProgressState& state, Parts& parts) {
  parts.add("step {}/{}", metrics.step, state.total_steps);
  parts.add("loss {:.4f}", metrics.loss);
  parts.add("lr {:.2e}", metrics.learning_rate);
  parts.add("{} left", base::ClockText(state.seconds_left).view());
  parts.add("{:.0f} tokens/s", metrics.tokens_per_second);
  if (state.planned_share > 0) parts.add("{:.0f} % of plan", 100 * state.planned_share);
  parts.add("{:.0f} MiB", static_cast<double>(metrics.resident_bytes) / (1 << 20));
  parts.add("grad_norm {:.3f}", metrics.grad_norm);
  if (metrics.aux_loss) parts.add("aux_loss {:.4f}", *metrics.aux_loss);
  if (metrics.loss_scale)
    parts.add("loss_scale {} skipped {}", *metrics.loss_scale, metrics.skipped_steps);
  for (size_t i = 0; i < metrics.measure_names.size(); ++i)
    if (is_shown_measure(metrics, i))
      parts.add("{} {:.4f}", metrics.measure_names[i], metrics.measures[i]);
  for (const NamedMeasure& measure : metrics.of_data)
    if (measure.is_shown) parts.add("{} {:.4f}", measure.name, measure.value);
}

}  // namespace

std::string_view progress_line(const StepMetrics& metrics, const ProgressState& state,
                               int64_t columns, std::span<char> buffer) {
  Parts parts(columns);
  add_parts(metrics, state, parts);
  size_t size = 0;
  const auto append = [&](std::string_view text) {
    if (size + text.size() > buffer.size()) return;
    std::ranges::copy(text, buffer.data() + size);
    size += text.size();
  };
  const int64_t bar = std::min(kWidestBar, columns - parts.columns() - 1);
  if (bar >= kNarrowestBar && parts.columns() > 0) {
    const double share = static_cast<double>(metrics.step) /
                         static_cast<double>(std::max<int64_t>(1, state.total_steps));
    const auto done = static_cast<int64_t>(static_cast<double>(bar) * std::min(1.0, share));
    for (int64_t i = 0; i < bar; ++i) append(i < done ? kDone : kOpen);
    append(" ");
  }
  append(parts.text());
  return {buffer.data(), size};
}

}  // namespace snug::train
