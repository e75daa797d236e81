// Stages: predict all settings; in ascending order of the lower bound of their time, size those
// predicted to fit, until no other can be faster than the best that fit; plan these in full,
// fastest first.
#include "plan/choice/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/seconds_since.h"
#include "passes/gradient/recompute.h"
#include "plan/choice/fit.h"
#include "plan/spec/spec.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

// Tolerances for the errors of predictions, which are some percent: only a setting that exceeds the
// budget by more than this factor is rejected, and only one that is slower by more than this factor
// is not considered.
constexpr double kBytesOff = 1.06;
constexpr double kSecondsOff = 1.10;
// Slower settings are ignored once this many that fit have been sized; and at most this many jobs
// of few layers are planned.
constexpr size_t kSizedThatFit = 6;
constexpr int64_t kMaxSizes = 150;
constexpr int64_t kMaxWholePlans = 5;
// After the three plans that are returned, only settings that are predicted to be faster by more
// than this factor are planned.
constexpr double kWorthPlanning = 1.02;

// Memory outside the arenas is measured once, as it is the same for every setting of the recipe.
Budget budget_for(const TrainingInputs& inputs, const Setting& plainest, SettingFigures& figures,
                  const MeasureProcess& measure) {
  Budget budget{inputs.target.capacity_bytes(program::Space::device),
                std::numeric_limits<int64_t>::max()};
  if (budget.device_bytes == 0) budget.device_bytes = std::numeric_limits<int64_t>::max();
  if (!host_limit(inputs.recipe, inputs.target)) return budget;
  TrainingSpec spec =
      training_spec(figures.recipe_with(plainest), inputs.model.config, inputs.target);
  spec.model = models::with_layers(spec.model, 1);
  const Job job = plan_training(spec, inputs.target);
  PlanDocument document = describe(job, inputs.target);
  if (measure) set_outside(document, measure(job).outside_bytes);
  budget.host_bytes = budget_of(inputs.recipe, document, inputs.target).host_bytes;
  return budget;
}

class Searcher {
 public:
  Searcher(const TrainingInputs& inputs, const MeasureProcess& measure)
      : inputs_(inputs),
        measure_(measure),
        settings_(settings_of(inputs.recipe, inputs.target)),
        figures_(inputs, settings_) {}

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    result_.budget = budget_for(inputs_, settings_.front(), figures_, measure_);
    predict_all();
    size_the_fastest();
    result_.judging_seconds = base::seconds_since(start);
    const auto planning = std::chrono::steady_clock::now();
    sort_judged();
    plan_the_best();
    sort_judged();  // planning changed the figures of those that were planned
    result_.planning_seconds = base::seconds_since(planning);
    result_.sized = figures_.sized_count();
    return std::move(result_);
  }

 private:
  double seconds(const JudgedSetting& judged) const {
    return judged.seconds_per_token(inputs_.recipe.max_length);
  }
  double least_seconds(const JudgedSetting& judged) const {
    const double share = judged.figures.step_seconds > 0
                             ? judged.figures.least_seconds / judged.figures.step_seconds
                             : 0;
    return share * seconds(judged);
  }

  void sort_judged() {
    std::ranges::stable_sort(result_.judged, [&](const JudgedSetting& a, const JudgedSetting& b) {
      const bool a_fits = a.judgement == Judgement::fits;
      const bool b_fits = b.judgement == Judgement::fits;
      return a_fits != b_fits ? a_fits : seconds(a) < seconds(b);
    });
  }

  // `off`: the error factor of the figures. A setting is rejected only if its bytes exceed the
  // budget by more than this factor.
  void judge(JudgedSetting& judged, double off) const {
    const Budget& budget = result_.budget;
    judged.judgement = Judgement::fits;
    if (judged.figures.device_bytes > off * static_cast<double>(budget.device_bytes))
      judged.judgement = Judgement::no_device_memory;
    else if (judged.figures.host_bytes > off * static_cast<double>(budget.host_bytes))
      judged.judgement = Judgement::no_host_memory;
  }

  template <typename Ask>
  void ask(JudgedSetting& judged, double off, Ask&& figures_of) {
    try {
      judged.figures = figures_of(judged.setting);
      judge(judged, off);
    } catch (const base::UserError& error) {
      refuse(judged, error);
    }
  }

  static void refuse(JudgedSetting& judged, const base::UserError& error) {
    judged.judgement = Judgement::refused;
    judged.refusal = error.what();
  }

  void predict_all() {
    for (const Setting& setting : settings_) {
      JudgedSetting& judged = result_.judged.emplace_back();
      judged.setting = setting;
      ask(judged, kBytesOff,
          [&](const Setting& each) { return figures_.predicted(each, result_.budget); });
    }
  }

  void size_the_fastest() {
    std::vector<JudgedSetting*> order;
    for (JudgedSetting& judged : result_.judged)
      if (judged.judgement == Judgement::fits) order.push_back(&judged);
    std::ranges::stable_sort(order, {}, [&](const JudgedSetting* judged) {
      return std::pair(least_seconds(*judged), seconds(*judged));
    });
    std::multiset<double> fitting;
    const int64_t most = figures_.sized_count() + kMaxSizes;
    for (JudgedSetting* judged : order) {
      if (fitting.size() == kSizedThatFit &&
          least_seconds(*judged) > kSecondsOff * *fitting.rbegin())
        break;
      if (figures_.sized_count() >= most) break;
      ask(*judged, 1, [&](const Setting& each) { return figures_.sized(each, result_.budget); });
      judged->is_sized = true;
      if (judged->judgement != Judgement::fits) continue;
      fitting.insert(seconds(*judged));
      if (fitting.size() > kSizedThatFit) fitting.erase(std::prev(fitting.end()));
    }
    // A setting that was predicted to exceed the budget, within the error, and that was never sized
    // is rejected now.
    for (JudgedSetting* judged : order)
      if (!judged->is_sized) judge(*judged, 1);
  }

  // Whether `open` (recompute=auto) resolves to a setting that was planned anyway, or to one that
  // differs from it only in offloading where no layer has checkpoints to offload.
  bool repeats(const JudgedSetting& open) const {
    if (open.setting.recompute != formats::Recompute::automatic) return false;
    if (open.setting.offloads_activations && !passes::keeps_checkpoints(open.figures.few) &&
        !passes::keeps_checkpoints(open.figures.more) &&
        !inputs_.recipe.is_given("activation_offloading"))
      return true;
    if (open.figures.few != open.figures.more) return false;
    Setting same = open.setting;
    same.recompute = open.figures.few;
    return std::ranges::any_of(result_.best,
                               [&](const FoundPlan& plan) { return plan.setting == same; });
  }

  void plan_the_best() {
    for (JudgedSetting& judged : result_.judged) {
      if (judged.judgement != Judgement::fits || result_.planned_whole >= kMaxWholePlans) break;
      if (result_.best.size() >= kBestPlans &&
          kWorthPlanning * seconds(judged) * result_.best[kBestPlans - 1].tokens_per_second >
              static_cast<double>(inputs_.recipe.rank_count()))
        break;
      if (repeats(judged)) continue;
      // An error in one plan does not end the search.
      try {
        plan_whole(judged);
      } catch (const base::UserError& error) {
        refuse(judged, error);
      }
    }
    if (result_.best.size() > kBestPlans) result_.best.resize(kBestPlans);
  }

  void plan_whole(JudgedSetting& judged) {
    ++result_.planned_whole;
    FoundPlan found{judged.setting, figures_.recipe_with(judged.setting), {}, 0};
    TrainingInputs inputs{found.recipe, inputs_.model, inputs_.target, inputs_.data, false};
    found.document = assemble_training(inputs, measure_).document;
    const PlanDocument& document = found.document;
    judged.figures.device_bytes = static_cast<double>(document.device.report.peak_bytes);
    judged.figures.host_bytes = static_cast<double>(document.host.report.peak_bytes);
    judged.figures.step_seconds = document.step_seconds;
    judged.is_sized = true;
    if (!fits(found.recipe, document, inputs_.target)) {
      judge(judged, 1);
      if (judged.judgement == Judgement::fits) judged.judgement = Judgement::no_host_memory;
      return;
    }
    found.tokens_per_second = static_cast<double>(document.tokens_per_step) / document.step_seconds;
    result_.best.push_back(std::move(found));
    std::ranges::stable_sort(result_.best, std::greater<>(), &FoundPlan::tokens_per_second);
  }

  const TrainingInputs& inputs_;
  const MeasureProcess& measure_;
  const std::vector<Setting> settings_;
  SettingFigures figures_;
  SearchResult result_;
};

std::string needs(double bytes, int64_t available, const char* what) {
  return fmt::format("needs {} of {} of {}", readable_bytes(static_cast<int64_t>(bytes)),
                     readable_bytes(available), what);
}

}  // namespace

SearchResult search(const TrainingInputs& inputs, const MeasureProcess& measure) {
  return Searcher(inputs, measure).run();
}

std::string reason(const JudgedSetting& judged, const Budget& budget) {
  switch (judged.judgement) {
    case Judgement::fits:
      return "";
    case Judgement::no_device_memory:
      return needs(judged.figures.device_bytes, budget.device_bytes, "the device");
    case Judgement::no_host_memory:
      return needs(judged.figures.host_bytes, budget.host_bytes, "the host");
    case Judgement::refused:
      return judged.refusal;
  }
  return "";
}

}  // namespace snug::plan
