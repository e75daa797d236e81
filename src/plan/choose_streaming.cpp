#include "plan/choose_streaming.h"

#include <algorithm>
#include <vector>

#include "plan/clock.h"

namespace snug::plan {
namespace {

using program::Space;

// A step that is longer by less is as good.
constexpr double kTolerance = 1.01;
// Windows are doubled so often at most.
constexpr int kMaxDoublings = 8;

struct Tried {
  passes::StreamOptions options;
  double step_seconds = 0;
  int64_t device_bytes = 0;
  bool fits = false;
};

// What fits comes first, then what is faster, and of what is as good what takes less of the device.
const Tried& best_of(const std::vector<Tried>& tried) {
  const auto comes_first = [](const Tried& a, const Tried& b) {
    if (a.fits != b.fits) return a.fits;
    if (a.step_seconds * kTolerance < b.step_seconds) return true;
    return a.step_seconds < b.step_seconds * kTolerance && a.device_bytes < b.device_bytes;
  };
  const Tried* best = &tried.front();
  for (const Tried& each : tried)
    if (comes_first(each, *best)) best = &each;
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
            capacity == 0 || bytes <= capacity};
  }

  // From no window on, as long as a larger one fits and makes the step shorter.
  Tried best_window(passes::StreamOptions options) const {
    options.window_bytes = 0;
    Tried best = attempt(options);
    options.window_bytes = 2 * largest_bytes(options);
    for (int i = 0; i < kMaxDoublings; ++i, options.window_bytes *= 2) {
      const Tried larger = attempt(options);
      if (!larger.fits) break;
      const bool gains = larger.step_seconds * kTolerance < best.step_seconds;
      if (gains) best = larger;
      // The first window may be too small for a copy and what is computed next to it.
      if (!gains && i > 0) break;
    }
    return best;
  }

 private:
  // Of the layers' tensors that stream.
  int64_t largest_bytes(const passes::StreamOptions& options) const {
    int64_t largest = 0;
    for (const program::Program& program : plan_training(spec_, target_).programs)
      for (const program::Tensor& tensor : program.tensors)
        if (tensor.layer >= 0 && passes::lies_on_host(tensor, options))
          largest = std::max(largest, tensor.bytes());
    return largest;
  }

  const TrainingSpec& spec_;
  const program::Target& target_;
  const Rates& rates_;
  const program::ExpectedBounds& expected_;
};

}  // namespace

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
  for (const passes::StreamOptions& form : forms)
    tried.push_back(choice.chooses_window ? chooser.best_window(form) : chooser.attempt(form));
  return best_of(tried).options;
}

}  // namespace snug::plan
