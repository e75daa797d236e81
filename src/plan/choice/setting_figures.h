// What a setting of a job takes, without planning the job whole, in two forms:
//
//   sized      from jobs of few layers with this very setting (layer_growth.h): a few milliseconds
//   predicted  from few such jobs for all settings: microseconds. What is computed, and what layers
//              keep, depends on recompute and rows; what is sharded, sent and copied, on
//              strategy, prefetch and offloading. So each of the two is sized with the other held
//              at its simplest, and the differences are added up, channel by channel: a step takes
//              at least as long as its busiest channel.
//
// Where a setting leaves it open what layers compute again, it takes what the fastest mixture of
// two modes takes that fits. Both forms are remembered. One thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "plan/choice/setting.h"
#include "plan/job/assembly.h"
#include "plan/job/layer_growth.h"

namespace snug::plan {

struct Figures {
  double device_bytes = 0;
  double host_bytes = 0;
  double step_seconds = 0;
  double least_seconds = 0;  // of a step: no order of its operations is faster
  // Where it was open: what some layers compute again, and the others; alike where all do the same.
  formats::Recompute few = formats::Recompute::automatic;
  formats::Recompute more = formats::Recompute::automatic;
};

class SettingFigures {
 public:
  // The inputs must outlive it. `settings` are those that will be asked for.
  SettingFigures(const TrainingInputs& inputs, const std::vector<Setting>& settings);

  // Both throw UserError for a setting that the recipe refuses. `budget`: what a mixture of modes
  // may take.
  Figures predicted(const Setting& setting, const Budget& budget);
  Figures sized(const Setting& setting, const Budget& budget);

  // How many settings have been sized so far, by jobs of few layers.
  int64_t sized_count() const { return static_cast<int64_t>(sizes_.size()); }
  // The recipe with a setting.
  formats::Recipe recipe_with(const Setting& setting) const;

 private:
  using Busy = std::array<double, program::kChannelCount>;

  // What a program of a micro-batch takes more than the simplest one.
  struct Work {
    double lasting_bytes[2]{};  // device, host
    double micro_bytes[2]{};
    Busy first{};
    Busy next{};
  };

  // Jobs of one device whose tensors all lie there, or those of the setting's own devices.
  struct Key {
    Setting setting;
    bool alone = false;
    auto operator<=>(const Key&) const = default;
  };

  const JobSize& size_of(Key key);
  // Memory for copies in the short jobs of a setting, which `spec` has.
  int64_t window_of(const Setting& setting, const TrainingSpec& spec);
  Work work_of(const Setting& setting);
  Work work_at(const Setting& setting, int64_t rows);
  Figures predicted_uniform(const Setting& setting);
  Figures sized_uniform(const Setting& setting);
  // The fastest mixture of two of these modes that fits; where none does, what takes the least.
  template <typename Uniform>
  Figures mixed(const Setting& setting, const Budget& budget,
                std::span<const formats::Recompute> modes, Uniform&& uniform);

  const TrainingInputs& inputs_;
  const Rates rates_;
  std::vector<int64_t> anchors_;  // rows that are sized; between them figures are interpolated
  bool accumulates_ = false;      // some settings have several micro-batches in a step
  std::map<Key, JobSize> sizes_;
  std::map<Key, Work> works_;
  // The largest tensor of a layer that streams: what layers compute again, and rows, are no part of
  // its size.
  std::map<std::tuple<formats::Strategy, bool, formats::OffloadOptimizer>, int64_t> largest_;
  std::map<Setting, Figures> predicted_;
};

}  // namespace snug::plan
