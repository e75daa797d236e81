#include "train/resume_metrics.h"

#include <fmt/format.h>

#include "base/console.h"

namespace snug::train {
namespace {

// Steps `first` to `last` of a run that goes on, where there are such steps.
void say_missing(const std::filesystem::path& metrics, int64_t first, int64_t last) {
  if (first > last) return;
  base::say(
      "{} has no lines of {}: they were removed, could not be written, or are in the folder of an "
      "earlier run",
      metrics.string(),
      first == last ? fmt::format("step {}", first) : fmt::format("steps {} to {}", first, last));
}

}  // namespace

formats::JsonLines resume_metrics(const std::filesystem::path& path, int64_t step) {
  formats::JsonLines metrics = formats::JsonLines::resume(path, step);
  const auto& kept = metrics.kept();
  say_missing(path, 1, kept ? kept->first - 1 : step);
  if (kept) say_missing(path, kept->last + 1, step);
  return metrics;
}

}  // namespace snug::train
