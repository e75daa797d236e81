#include "plan/choice/setting_figures.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "passes/gradient/recompute.h"
#include "plan/job/training_programs.h"
#include "plan/spec/spec.h"
#include "plan/time/calibration_file.h"
#include "plan/time/clock.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using formats::Recompute;
using program::ProgramName;
using program::Space;

// Copies of two tensors of a layer that are in use, and of six that begin ahead.
constexpr int64_t kStreamedTensors = 8;

double device_of(const JobSize::Bytes& bytes) {
  return static_cast<double>(bytes[static_cast<size_t>(Space::device)]);
}

double host_of(const JobSize::Bytes& bytes) {
  return static_cast<double>(bytes[static_cast<size_t>(Space::host)] +
                             bytes[static_cast<size_t>(Space::pinned_host)]);
}

const ProgramTime* find(const JobSize& size, ProgramName name) {
  const auto found = std::ranges::find(size.programs, name, &ProgramTime::name);
  return found == size.programs.end() ? nullptr : &*found;
}

// How often a step with this many micro-batches runs a program.
double runs_of(const JobSize& size, ProgramName name, int64_t accumulation) {
  const bool has_last = find(size, ProgramName::micro_last) != nullptr;
  if (name != ProgramName::micro_next) return 1;
  return static_cast<double>(accumulation - (has_last ? 2 : 1));
}

double between(double from, double to, double share) { return from + share * (to - from); }

}  // namespace

SettingFigures::SettingFigures(const TrainingInputs& inputs, const std::vector<Setting>& settings)
    : inputs_(inputs), rates_(rates_for(inputs.recipe, inputs.target)) {
  std::set<int64_t> rows;
  for (const Setting& setting : settings) {
    rows.insert(setting.rows);
    accumulates_ = accumulates_ || setting.accumulation > 1;
  }
  const std::vector<int64_t> all(rows.begin(), rows.end());
  std::set<int64_t> anchors;
  for (const size_t at : {size_t{0}, all.size() / 2, all.size() - 1}) anchors.insert(all[at]);
  anchors_.assign(anchors.begin(), anchors.end());
}

formats::Recipe SettingFigures::recipe_with(const Setting& setting) const {
  return with_overrides(inputs_.recipe, overrides_of(setting, inputs_.recipe, inputs_.target));
}

// The window that the recipe sets, else a multiple of the largest tensor that streams in the short
// jobs.
int64_t SettingFigures::window_of(const Setting& setting, const TrainingSpec& spec) {
  if (inputs_.recipe.offload_window > 0) return inputs_.recipe.offload_window;
  const auto [entry, is_new] =
      largest_.try_emplace({setting.strategy, setting.offloads_params, setting.optimizer}, 0);
  if (!is_new) return kStreamedTensors * entry->second;
  TrainingSpec few = spec;
  few.model = models::with_layers(spec.model, 1);
  few.streaming.window_bytes = 0;
  for (const program::Program& program : training_programs(few, inputs_.target).programs)
    for (const program::Tensor& tensor : program.tensors)
      if (tensor.layer >= 0 && passes::lies_on_host(tensor, few.streaming))
        entry->second = std::max(entry->second, tensor.bytes());
  return kStreamedTensors * entry->second;
}

const JobSize& SettingFigures::size_of(Key key) {
  // Three micro-batches need the same programs as any larger number.
  key.setting.accumulation = std::min<int64_t>(key.setting.accumulation, key.alone ? 2 : 3);
  if (!passes::keeps_checkpoints(key.setting.recompute)) key.setting.offloads_activations = false;
  const auto known = sizes_.find(key);
  if (known != sizes_.end()) return known->second;
  TrainingSpec spec = training_spec(recipe_with(key.setting), inputs_.model.config, inputs_.target,
                                    inputs_.documents());
  if (key.alone) {
    spec.ranks = {};
    spec.streaming = {};
  }
  const bool streams = spec.streaming.moves_any() && !inputs_.target.host_reaches_device();
  if (streams) spec.streaming.window_bytes = window_of(key.setting, spec);
  return sizes_.emplace(key, size_by_layers(spec, inputs_.target, rates_, streams)).first->second;
}

SettingFigures::Work SettingFigures::work_at(const Setting& setting, int64_t rows) {
  Setting alone;
  alone.strategy = inputs_.recipe.strategy;
  alone.prefetch = inputs_.recipe.prefetch;
  alone.recompute = setting.recompute;
  alone.offloads_activations =
      setting.offloads_activations && passes::keeps_checkpoints(setting.recompute);
  alone.rows = rows;
  alone.accumulation = accumulates_ ? 2 : 1;
  const auto known = works_.find({alone, true});
  if (known != works_.end()) return known->second;
  const JobSize& size = size_of({alone, true});
  Work work;
  work.lasting_bytes[0] = device_of(size.lasting_bytes);
  work.lasting_bytes[1] = host_of(size.lasting_bytes);
  work.micro_bytes[0] = device_of(size.micro_bytes);
  work.micro_bytes[1] = host_of(size.micro_bytes);
  for (const auto& [name, busy] :
       {std::pair{ProgramName::micro_first, &work.first},
        std::pair{accumulates_ ? ProgramName::micro_next : ProgramName::micro_first, &work.next}})
    for (const auto& [channel, seconds] : find(size, name)->busy)
      (*busy)[static_cast<size_t>(channel)] = seconds;
  return works_[{alone, true}] = work;
}

// Interpolated linearly between the numbers of rows that are sized.
SettingFigures::Work SettingFigures::work_of(const Setting& setting) {
  const auto above = std::ranges::lower_bound(anchors_, setting.rows);
  SNUG_CHECK(above != anchors_.end(), "{} rows are more than were told", setting.rows);
  if (*above == setting.rows) return work_at(setting, setting.rows);
  const int64_t below = *(above - 1);
  Work work = work_at(setting, below);
  const Work more = work_at(setting, *above);
  const double share =
      static_cast<double>(setting.rows - below) / static_cast<double>(*above - below);
  for (size_t i = 0; i < 2; ++i) {
    work.lasting_bytes[i] = between(work.lasting_bytes[i], more.lasting_bytes[i], share);
    work.micro_bytes[i] = between(work.micro_bytes[i], more.micro_bytes[i], share);
  }
  for (size_t i = 0; i < program::kChannelCount; ++i) {
    work.first[i] = between(work.first[i], more.first[i], share);
    work.next[i] = between(work.next[i], more.next[i], share);
  }
  return work;
}

Figures SettingFigures::predicted_uniform(const Setting& setting) {
  const auto known = predicted_.find(setting);
  if (known != predicted_.end()) return known->second;
  Setting plain = setting;
  plain.recompute = Recompute::layer;
  plain.offloads_activations = false;
  plain.rows = anchors_.front();
  const JobSize& own = size_of({plain, false});
  const Work base = work_at(plain, plain.rows);
  const Work work = work_of(setting);
  Figures figures;
  const auto bytes = [&](size_t space, auto of) {
    const double micro = of(own.micro_bytes) + work.micro_bytes[space] - base.micro_bytes[space];
    return of(own.lasting_bytes) + work.lasting_bytes[space] - base.lasting_bytes[space] +
           std::max(micro, of(own.other_bytes));
  };
  figures.device_bytes = bytes(0, device_of);
  figures.host_bytes = bytes(1, host_of);
  for (const ProgramTime& program : own.programs) {
    Busy busy{};
    for (const auto& [channel, seconds] : program.busy)
      busy[static_cast<size_t>(channel)] = seconds;
    const double waits = program.seconds - *std::ranges::max_element(busy);
    const Busy& more = program.name == ProgramName::micro_first ? work.first : work.next;
    const Busy& less = program.name == ProgramName::micro_first ? base.first : base.next;
    if (program.name != ProgramName::update)
      for (size_t i = 0; i < program::kChannelCount; ++i) busy[i] += more[i] - less[i];
    const double runs = runs_of(own, program.name, setting.accumulation);
    const double least = *std::ranges::max_element(busy);
    figures.least_seconds += runs * least;
    figures.step_seconds += runs * (least + waits);
  }
  return predicted_[setting] = figures;
}

Figures SettingFigures::sized_uniform(const Setting& setting) {
  const JobSize& size = size_of({setting, false});
  Figures figures{.device_bytes = device_of(size.lower_bound_bytes),
                  .host_bytes = host_of(size.lower_bound_bytes)};
  for (const ProgramTime& program : size.programs)
    figures.step_seconds += runs_of(size, program.name, setting.accumulation) * program.seconds;
  figures.least_seconds = figures.step_seconds;
  return figures;
}

// The bytes and seconds of a mixture are interpolated between those of its modes, in proportion to
// their layers.
template <typename Uniform>
Figures SettingFigures::mixed(const Setting& setting, const Budget& budget,
                              std::span<const Recompute> modes, Uniform&& uniform) {
  std::vector<Figures> all;
  for (const Recompute mode : modes) {
    Setting each = setting;
    each.recompute = mode;
    all.push_back(uniform(each));
    all.back().few = all.back().more = mode;
  }
  const auto layers = static_cast<double>(inputs_.model.config.num_layers);
  const auto device = static_cast<double>(budget.device_bytes);
  std::optional<Figures> best;
  const auto offer = [&](const Figures& figures) {
    const bool fits = figures.device_bytes <= device &&
                      figures.host_bytes <= static_cast<double>(budget.host_bytes);
    if (fits && (!best || figures.step_seconds < best->step_seconds)) best = figures;
  };
  for (const Figures& few : all) {
    offer(few);
    for (const Figures& more : all) {
      // `more` is faster, but too large for all layers.
      const double room = device - few.device_bytes;
      const double added = more.device_bytes - few.device_bytes;
      if (more.step_seconds >= few.step_seconds || room < 0 || added <= room) continue;
      const double share = std::floor(layers * room / added) / layers;
      if (share == 0) continue;
      offer({.device_bytes = between(few.device_bytes, more.device_bytes, share),
             .host_bytes = between(few.host_bytes, more.host_bytes, share),
             .step_seconds = between(few.step_seconds, more.step_seconds, share),
             .least_seconds = between(few.least_seconds, more.least_seconds, share),
             .few = few.few,
             .more = more.more});
    }
  }
  return best ? *best : *std::ranges::min_element(all, {}, &Figures::device_bytes);
}

Figures SettingFigures::predicted(const Setting& setting, const Budget& budget) {
  if (setting.recompute != Recompute::automatic) return predicted_uniform(setting);
  return mixed(setting, budget, passes::kRecomputeModes,
               [&](const Setting& each) { return predicted_uniform(each); });
}

Figures SettingFigures::sized(const Setting& setting, const Budget& budget) {
  if (setting.recompute != Recompute::automatic) return sized_uniform(setting);
  const Figures rough = predicted(setting, budget);
  const std::array modes{rough.few, rough.more};
  return mixed(setting, budget, modes, [&](const Setting& each) { return sized_uniform(each); });
}

}  // namespace snug::plan
