#include "plan/choose_streaming.h"

#include <algorithm>
#include <vector>

#include "plan/clock.h"

namespace snug::plan {
namespace {

using program::Space;

// A step that is longer by less is as good.
constexpr double kTolerance = 1.01;
// The largest is 64 times the first, which has room for two tensors of a layer.
constexpr int kMaxWindows = 7;

struct Tried {
  passes::StreamOptions options;
  double step_seconds = 0;
  int64_t device_bytes = 0;
  int64_t largest_bytes = 0;  // of the layers' tensors that stream
  bool fits = false;
};

int64_t largest_streamed(const Job& job, const passes::StreamOptions& options) {
  int64_t largest = 0;
  for (const program::Program& program : job.programs)
    for (const program::Tensor& tensor : program.tensors)
      if (tensor.layer >= 0 && passes::lies_on_host(tensor, options))
        largest = std::max(largest, tensor.bytes());
  return largest;
}

// What fits comes first, then what is fast, and of what is as good what takes the least of the
// device.
const Tried& best_of(const std::vector<Tried>& tried) {
  const auto is_faster = [](const Tried& a, const Tried& b) {
    return a.fits != b.fits ? a.fits : a.step_seconds < b.step_seconds;
  };
  const Tried* best = &*std::ranges::min_element(tried, is_faster);
  const double limit_seconds = kTolerance * best->step_seconds;
  for (const Tried& each : tried)
    if (each.fits == best->fits && each.step_seconds <= limit_seconds &&
        each.device_bytes < best->device_bytes)
      best = &each;
  return *best;
}

class Chooser {
 public:
  Chooser(const TrainingSpec& spec, const program::Target& target, const Rates& rates,
          const program::ExpectedBounds& expected)
      : spec_(spec), target_(target), rates_(rates), expected_(expected) {}

  Tried attempt(const passes::StreamOptions& options) const {
    TrainingSpec spec = spec_;
    spec.streaming = options;
    const Job job = plan_training(spec, target_);
    const int64_t capacity = target_.capacity_bytes(Space::device);
    const int64_t bytes = job.layout.spaces[static_cast<size_t>(Space::device)].arena_bytes;
    return {options, step_seconds(job, spec.accumulation, rates_, expected_), bytes,
            largest_streamed(job, options), capacity == 0 || bytes <= capacity};
  }

  // With no window, and with ever larger ones as long as they fit.
  std::vector<Tried> windows(passes::StreamOptions options) const {
    options.window_bytes = 0;
    std::vector<Tried> tried{attempt(options)};
    options.window_bytes = 2 * tried.back().largest_bytes;
    for (int i = 0; i < kMaxWindows && tried.back().fits; ++i, options.window_bytes *= 2)
      tried.push_back(attempt(options));
    return tried;
  }

 private:
  const TrainingSpec& spec_;
  const program::Target& target_;
  const Rates& rates_;
  const program::ExpectedBounds& expected_;
};

}  // namespace

StreamingChoice streaming_choice(const formats::Recipe& recipe, const TrainingSpec& spec,
                                 const program::Target& target) {
  if (!spec.streaming.moves_any() || target.host_reaches_device()) return {};
  return {.chooses_window = recipe.offload_window == 0,
          .chooses_updates = recipe.offload_optimizer == formats::OffloadOptimizer::automatic};
}

passes::StreamOptions choose_streaming(const TrainingSpec& spec, const StreamingChoice& choice,
                                       const program::Target& target, const Rates& rates,
                                       const program::ExpectedBounds& expected) {
  const Chooser chooser(spec, target, rates, expected);
  std::vector<passes::StreamOptions> forms{spec.streaming};
  if (choice.chooses_updates) {
    forms.push_back(spec.streaming);
    forms.back().update_on_host = !spec.streaming.update_on_host;
  }
  std::vector<Tried> tried;
  for (const passes::StreamOptions& form : forms) {
    const std::vector<Tried> more =
        choice.chooses_window ? chooser.windows(form) : std::vector<Tried>{chooser.attempt(form)};
    tried.insert(tried.end(), more.begin(), more.end());
  }
  return best_of(tried).options;
}

}  // namespace snug::plan
