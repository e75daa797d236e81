// Stages: plan the programs of the job with larger and larger windows, until one is too large or as
// good as any could be; take the fastest of those that fit. Sizes are lower bounds; they are made
// exact if the chosen window might not fit after all.
#include "plan/choice/choose_streaming.h"

#include <algorithm>
#include <vector>

#include "methods/optimizer.h"
#include "plan/job/training_programs.h"
#include "plan/time/clock.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using program::Space;

// A step that is at most this much longer counts as equally fast.
constexpr double kTolerance = 1.01;
// The largest window is 64 times the first, which has room for two tensors of a layer.
constexpr int kMaxWindows = 7;

// An arena whose lower bound is below this part of its budget counts as fitting.
constexpr double kNearBudget = 0.9;

// Which arenas of a job fit their budgets, in ascending order of quality.
enum class Fit : uint8_t { neither, device, both };

struct Tried {
  passes::StreamOptions options;
  double step_seconds = 0;
  double compute_seconds = 0;  // the device's compute time in a step, without waiting
  int64_t device_bytes = 0;
  int64_t largest_bytes = 0;  // of the layers' tensors that stream
  Fit fit = Fit::neither;
  bool is_exact = false;  // otherwise sizes are lower bounds of arenas
};

int64_t largest_streamed(const Job& job, const passes::StreamOptions& options) {
  int64_t largest = 0;
  for (const program::Program& program : job.programs)
    for (const program::Tensor& tensor : program.tensors)
      if (tensor.layer >= 0 && passes::lies_on_host(tensor, options))
        largest = std::max(largest, tensor.bytes());
  return largest;
}

// A window that fits is best, then a fast one, and among equally fast ones the one with the least
// device memory.
Tried& best_of(std::vector<Tried>& tried) {
  const auto is_faster = [](const Tried& a, const Tried& b) {
    return a.fit != b.fit ? a.fit > b.fit : a.step_seconds < b.step_seconds;
  };
  Tried* best = &*std::ranges::min_element(tried, is_faster);
  const double limit_seconds = kTolerance * best->step_seconds;
  for (Tried& each : tried)
    if (each.fit == best->fit && each.step_seconds <= limit_seconds &&
        each.device_bytes < best->device_bytes)
      best = &each;
  return *best;
}

class StreamingChooser {
 public:
  StreamingChooser(const TrainingSpec& spec, const StreamingChoice& choice,
                   const program::Target& target, const Rates& rates,
                   const program::ExpectedBounds& expected)
      : spec_(spec), choice_(choice), target_(target), rates_(rates), expected_(expected) {}

  Tried attempt(const passes::StreamOptions& options) const {
    TrainingSpec spec = spec_;
    spec.streaming = options;
    const Job job = training_programs(spec, target_);
    Tried tried{.options = options,
                .device_bytes = arena_bytes(job, Space::device),
                .largest_bytes = largest_streamed(job, options),
                .fit = fit_of(job),
                .is_exact = !is_near_budget(job)};
    const std::vector<ProgramTime> times = program_times(job, spec.accumulation, rates_, expected_);
    const std::vector<StepProgram> steps = step_programs(job, spec.accumulation);
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto runs = static_cast<double>(steps[i].runs);
      tried.step_seconds += runs * times[i].seconds;
      if (const auto busy = times[i].busy.find(program::Channel::compute);
          busy != times[i].busy.end())
        tried.compute_seconds += runs * busy->second;
    }
    return tried;
  }

  // Tries no window, then larger and larger ones while they fit and can be faster. The compute time
  // is a lower bound for all, as it does not depend on the window.
  std::vector<Tried> windows(passes::StreamOptions options) const {
    options.window_bytes = 0;
    std::vector<Tried> tried{attempt(options)};
    options.window_bytes = 2 * tried.back().largest_bytes;
    const auto may_be_better = [](const Tried& last) {
      return last.fit != Fit::neither &&
             (last.fit != Fit::both || last.step_seconds > kTolerance * last.compute_seconds);
    };
    for (int i = 0; i < kMaxWindows && may_be_better(tried.back()); ++i, options.window_bytes *= 2)
      tried.push_back(attempt(options));
    return tried;
  }

  void make_exact(Tried& tried) const {
    TrainingSpec spec = spec_;
    spec.streaming = tried.options;
    const Job job = plan_training(spec, target_);
    tried.device_bytes = arena_bytes(job, Space::device);
    tried.fit = fit_of(job);
    tried.is_exact = true;
  }

 private:
  static int64_t arena_bytes(const Job& job, Space space) {
    return job.layout.spaces[static_cast<size_t>(space)].arena_bytes;
  }

  static int64_t host_bytes(const Job& job) {
    return arena_bytes(job, Space::pinned_host) + arena_bytes(job, Space::host);
  }

  Fit fit_of(const Job& job) const {
    const int64_t capacity = choice_.device_bytes;
    if (capacity > 0 && arena_bytes(job, Space::device) > capacity) return Fit::neither;
    const bool fits_host = !choice_.host_budget || host_bytes(job) <= choice_.host_budget(job);
    return fits_host ? Fit::both : Fit::device;
  }

  bool is_near_budget(const Job& job) const {
    const auto is_near = [](int64_t bytes, int64_t budget) {
      return static_cast<double>(bytes) > kNearBudget * static_cast<double>(budget);
    };
    const int64_t capacity = choice_.device_bytes;
    return (capacity > 0 && is_near(arena_bytes(job, Space::device), capacity)) ||
           (choice_.host_budget && is_near(host_bytes(job), choice_.host_budget(job)));
  }

  const TrainingSpec& spec_;
  const StreamingChoice& choice_;
  const program::Target& target_;
  const Rates& rates_;
  const program::ExpectedBounds& expected_;
};

}  // namespace

StreamingChoice streaming_choice(const formats::Recipe& recipe, const TrainingSpec& spec,
                                 const program::Target& target) {
  if (!spec.streaming.moves_any() || target.host_reaches_device()) return {};
  return {.chooses_window = recipe.offload_window == 0,
          .chooses_updates = recipe.offload_optimizer == formats::OffloadOptimizer::automatic &&
                             methods::steps_on_host(recipe.optim, recipe.ema_decay),
          .device_bytes = target.capacity_bytes(Space::device),
          .host_budget = {}};
}

passes::StreamOptions choose_streaming(const TrainingSpec& spec, const StreamingChoice& choice,
                                       const program::Target& target, const Rates& rates,
                                       const program::ExpectedBounds& expected) {
  const StreamingChooser chooser(spec, choice, target, rates, expected);
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
  while (!best_of(tried).is_exact) chooser.make_exact(best_of(tried));
  return best_of(tried).options;
}

}  // namespace snug::plan
