// The memory and time of a setting, without planning the job in full, in two forms:
//
//   sized      from jobs of few layers with this very setting (layer_growth.h): a few milliseconds
//   predicted  from few such jobs for all settings: microseconds. What is computed, and what layers
//              keep, depends on recompute and rows; what is sharded, sent and copied, on
//              strategy, prefetch and offloading. So each of the two is sized with the other held
//              at its simplest, and the differences are added up, channel by channel: a step takes
//              at least as long as its busiest channel.
//
// Where a setting leaves recompute open, the figures are those of the fastest mixture of two modes
// that fits. Both forms are cached. Not thread-safe.
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
  double least_seconds = 0;  // lower bound of the step's time for any order of its operations
  // If recompute was open: the modes of some layers and of the others, equal where all have the
  // same mode.
  formats::Recompute few = formats::Recompute::automatic;
  formats::Recompute more = formats::Recompute::automatic;
};

class SettingFigures {
 public:
  // The inputs must outlive the object. `settings`: those that will be asked for.
  SettingFigures(const TrainingInputs& inputs, const std::vector<Setting>& settings);

  // Both throw UserError for a setting that the recipe refuses. `budget`: the limit for a mixture
  // of modes.
  Figures predicted(const Setting& setting, const Budget& budget);
  Figures sized(const Setting& setting, const Budget& budget);

  // How many settings have been sized so far, from jobs of few layers.
  int64_t sized_count() const { return static_cast<int64_t>(sizes_.size()); }
  // The recipe with a setting.
  formats::Recipe recipe_with(const Setting& setting) const;

 private:
  using Busy = std::array<double, program::kChannelCount>;

  // The work and memory that a program of a micro-batch has in addition to the simplest program's.
  struct Work {
    double lasting_bytes[2]{};  // device, host
    double micro_bytes[2]{};
    Busy first{};
    Busy next{};
  };

  // Identifies short jobs: of one device that holds all their tensors, or with the setting's own
  // devices.
  struct Key {
    Setting setting;
    bool alone = false;
    auto operator<=>(const Key&) const = default;
  };

  const JobSize& size_of(Key key);
  // Device memory for copies in the short jobs of a setting with this spec.
  int64_t window_of(const Setting& setting, const TrainingSpec& spec);
  Work work_of(const Setting& setting);
  Work work_at(const Setting& setting, int64_t rows);
  Figures predicted_uniform(const Setting& setting);
  Figures sized_uniform(const Setting& setting);
  // The fastest mixture of two of these modes that fits; where none fits, the one that takes the
  // least memory.
  template <typename Uniform>
  Figures mixed(const Setting& setting, const Budget& budget,
                std::span<const formats::Recompute> modes, Uniform&& uniform);

  const TrainingInputs& inputs_;
  const Rates rates_;
  std::vector<int64_t> anchors_;  // sized numbers of rows; others are interpolated
  bool accumulates_ = false;      // some settings have several micro-batches in a step
  std::map<Key, JobSize> sizes_;
  std::map<Key, Work> works_;
  // The largest tensor of a layer that streams; its size does not depend on recompute or rows.
  std::map<std::tuple<formats::Strategy, bool, formats::OffloadOptimizer>, int64_t> largest_;
  std::map<Setting, Figures> predicted_;
};

}  // namespace snug::plan
