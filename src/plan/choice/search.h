// Finds the fastest settings of a job (setting.h) that fit a machine's memory. Every setting is
// judged: first by prediction; those that may be among the fastest and fit are sized from jobs of
// few layers; the best of them are planned in full, as `snug plan` plans the recipe with that
// setting (assembly.h), and only these figures decide which is first. setting_figures.h explains
// predicting and sizing. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "plan/choice/change.h"
#include "plan/choice/setting.h"
#include "plan/choice/setting_figures.h"
#include "plan/job/assembly.h"

namespace snug::plan {

enum class Judgement : uint8_t {
  fits,              // according to its prediction or its size
  no_device_memory,  // takes more than there is
  no_host_memory,
  refused,  // by the recipe's rules
};
constexpr auto words_of(Judgement /*type*/) {
  return base::words<Judgement>({{Judgement::fits, "fits"},
                                 {Judgement::no_device_memory, "no device memory"},
                                 {Judgement::no_host_memory, "no host memory"},
                                 {Judgement::refused, "refused"}});
}

struct JudgedSetting {
  Setting setting;
  Judgement judgement = Judgement::fits;
  Figures figures;
  bool is_sized = false;  // otherwise only predicted
  std::string refusal;    // why the recipe refuses it

  double seconds_per_token(int64_t row_tokens) const {
    return figures.step_seconds /
           static_cast<double>(setting.rows * setting.accumulation * row_tokens);
  }
};

// A setting that was planned in full and fits.
struct FoundPlan {
  Setting setting;
  formats::Recipe recipe;  // with the setting
  PlanDocument document;
  double tokens_per_second = 0;  // of all devices together
};

struct SearchResult {
  // Settings that fit come first; each part is in order of speed.
  std::vector<JudgedSetting> judged;
  std::vector<FoundPlan> best;  // fastest first; empty: nothing fits
  Budget budget;                // the limits of the arenas
  int64_t sized = 0;            // number of jobs of few layers that were planned
  int64_t planned_whole = 0;
  double judging_seconds = 0;   // time for judging all settings
  double planning_seconds = 0;  // time for planning the best in full
};

// The most plans that are returned.
inline constexpr size_t kBestPlans = 3;

// The inputs must outlive the call. `measure`: as for assemble_training.
SearchResult search(const TrainingInputs& inputs, const MeasureProcess& measure = {});

// Why a setting was rejected, such as "needs 31.7 GiB of the device's 22.6"; empty if it was not.
std::string reason(const JudgedSetting& judged, const Budget& budget);

}  // namespace snug::plan
