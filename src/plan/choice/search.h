// The fastest settings of a job (setting.h) that fit a machine's memory. All are judged: each is
// predicted; those that may be among the fastest, and fit, are sized from jobs of few layers; the
// best of them are planned whole, as `snug plan` plans the recipe with that setting
// (assembly.h), and these figures alone decide which is first. setting_figures.h says what
// predicting and sizing are. One thread.
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
  fits,              // by its prediction or its size
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
  bool is_sized = false;  // else predicted
  std::string refusal;    // why the recipe refuses it

  double seconds_per_token(int64_t row_tokens) const {
    return figures.step_seconds /
           static_cast<double>(setting.rows * setting.accumulation * row_tokens);
  }
};

// A setting that was planned whole and fits.
struct FoundPlan {
  Setting setting;
  formats::Recipe recipe;  // with the setting
  PlanDocument document;
  double tokens_per_second = 0;  // of all devices
};

struct SearchResult {
  // What fits first, then the fastest.
  std::vector<JudgedSetting> judged;
  std::vector<FoundPlan> best;  // the fastest first; empty: nothing fits
  Budget budget;                // what arenas may take
  int64_t sized = 0;            // jobs of few layers
  int64_t planned_whole = 0;
  double judging_seconds = 0;   // what it took to judge all
  double planning_seconds = 0;  // what it took to plan the best whole
};

// The most plans that are returned; fewer where fewer fit.
inline constexpr size_t kBestPlans = 3;

// The inputs must outlive the call. `measure` as in assemble_training.
SearchResult search(const TrainingInputs& inputs, const MeasureProcess& measure = {});

// "needs 31.7 GiB of the device's 22.6": why a setting was rejected; empty where it was not.
std::string reason(const JudgedSetting& judged, const Budget& budget);

}  // namespace snug::plan
