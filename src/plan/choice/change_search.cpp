// Stages: list the classes of changes; in each class, find the longest row that fits by bisection,
// since memory grows with the row; at that length find the mildest variant in the same way, and
// with it, for each way to save activations, the largest micro-batch; keep the fastest. A candidate
// that fits by its lower bound is planned in full and checked again, until the winner's arenas
// really fit.
#include "plan/choice/change_search.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "formats/recipe/method_keys.h"
#include "methods/method.h"
#include "methods/objective.h"
#include "methods/optimizer.h"
#include "models/families/families.h"
#include "models/weights.h"
#include "plan/choice/choose_streaming.h"
#include "plan/choice/first_fitting.h"
#include "plan/job/layer_growth.h"
#include "plan/job/rank_grid.h"
#include "plan/spec/objective_spec.h"
#include "plan/spec/rollout_spec.h"
#include "plan/spec/spec.h"
#include "plan/time/calibration_file.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using formats::ComputeDtype;
using formats::GradientDtype;
using formats::Method;
using formats::Optimizer;
using formats::Recipe;
using formats::Recompute;

// Rows are not made shorter than kShortRow, or a quarter of what the user asked, before the other
// classes have been tried; and never shorter than kShortestRow.
constexpr int64_t kShortRow = 512;
constexpr int64_t kShortestRow = 16;

// Savings without offloading come first; the last ones take the least device memory.
constexpr auto kSavings = std::to_array<Saving>({{Recompute::none, false},
                                                 {Recompute::gate_up, false},
                                                 {Recompute::attention, false},
                                                 {Recompute::all_but_attention, false},
                                                 {Recompute::layer, false},
                                                 {Recompute::all_but_attention, true},
                                                 {Recompute::layer, true},
                                                 {Recompute::layer, true, true}});
constexpr size_t kOffloading = 3;
// The savings to try where the recipe leaves recompute open.
constexpr auto kOpenSavings = std::to_array<Saving>({{Recompute::automatic, false},
                                                     {Recompute::automatic, true},
                                                     {Recompute::automatic, true, true}});

// Strategies, from the one that keeps the most on each device to the one that keeps the least.
constexpr std::array kStrategies{formats::Strategy::zero1, formats::Strategy::zero2,
                                 formats::Strategy::shard_grad_op, formats::Strategy::full_shard};

template <typename Enum>
std::pair<std::string, std::string> set_to(const char* key, Enum value) {
  return {key, std::string(base::word_of(value))};
}

bool always_in_4_bits(Method method) { return formats::method_keys_of(method).always_in_4_bits; }

double tokens_per_step(const TrainingSpec& spec) {
  return static_cast<double>(spec.micro_tokens() * spec.accumulation);
}

Overrides joined(Overrides first, const Overrides& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

ChangeSearch::ChangeSearch(const Recipe& recipe, const models::ModelConfig& model,
                           const program::Target& target, JobDocuments documents)
    : recipe_(recipe),
      model_(model),
      target_(target),
      documents_(std::move(documents)),
      rates_(rates_for(recipe, target)),
      savings_(all_savings()) {}

std::optional<Change> ChangeSearch::cheapest(const Budget& budget) {
  for (const Stage& stage : stages())
    while (Candidate* candidate = longest(stage, budget)) {
      if (candidate->is_whole) return change_of(*candidate);
      plan_whole(*candidate);
    }
  plan_least();
  return std::nullopt;
}

std::optional<Change> ChangeSearch::least() const {
  const Candidate* least = nullptr;
  for (const auto& [key, candidate] : candidates_)
    if (candidate && candidate->is_whole &&
        (least == nullptr || candidate->bytes.device_bytes < least->bytes.device_bytes))
      least = &*candidate;
  if (least == nullptr) return std::nullopt;
  return change_of(*least);
}

ChangeSearch::Effort ChangeSearch::effort() const {
  Effort effort;
  for (const auto& [key, candidate] : candidates_) {
    if (!candidate) continue;
    ++effort.sized;
    if (candidate->is_whole) ++effort.planned_whole;
  }
  return effort;
}

void ChangeSearch::plan_least() {
  Candidate* least = nullptr;
  for (auto& [key, candidate] : candidates_)
    if (candidate &&
        (least == nullptr || candidate->bytes.device_bytes < least->bytes.device_bytes))
      least = &*candidate;
  if (least != nullptr && !least->is_whole) plan_whole(*least);
}

Change ChangeSearch::change_of(const Candidate& candidate) {
  return {candidate.overrides, candidate.bytes.device_bytes, candidate.bytes.host_bytes,
          candidate.leaves_open, candidate.seconds_per_token};
}

int64_t ChangeSearch::kept_tokens() const {
  return methods::objective_of(recipe_.objective).makes_answers ? most_prompt_tokens(recipe_) : 0;
}

Overrides ChangeSearch::of_length(int64_t length) const {
  Overrides overrides{{"max_length", std::to_string(length)}};
  if (const int64_t kept = kept_tokens(); kept > 0)
    overrides.emplace_back("max_completion_length", std::to_string(length - kept));
  return overrides;
}

std::vector<int64_t> ChangeSearch::halvings(int64_t from, int64_t least) const {
  const int64_t kept = kept_tokens();
  std::vector<int64_t> lengths;
  for (int64_t rest = from; rest >= std::max(least, kShortestRow); rest /= 2) {
    if (!takes_length(kept + rest)) break;
    lengths.push_back(kept + rest);
  }
  return lengths;
}

// The data refuse rows that would cut away an answer, and then they refuse all shorter rows too.
bool ChangeSearch::takes_length(int64_t length) const {
  try {
    (void)spec_of(of_length(length));
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

bool ChangeSearch::has_wide_gradients() const {
  const TrainingSpec spec = spec_of({});
  return !spec.is_adapted() && spec.compute == program::DType::bf16 &&
         spec.update.gradient == program::DType::f32;
}

std::vector<Overrides> ChangeSearch::numerics() const {
  std::vector<Overrides> variants;
  // bf16 compute is left out where compute is in 16 bits already, since it would save nothing.
  const auto in_bf16 = set_to("compute_dtype", ComputeDtype::bf16);
  const auto leaner = methods::optimizer_of(recipe_.optim).leaner;
  const Recipe bf16 = with_overrides(recipe_, {in_bf16});
  bool gains_bf16 = false;
  try {
    gains_bf16 = compute_type(recipe_, target_) == program::DType::f32 &&
                 compute_type(bf16, target_) != program::DType::f32;
  } catch (const base::UserError&) {
    // This target computes only in fp32.
  }
  if (gains_bf16) {
    variants.push_back({in_bf16});
    for (const Optimizer each : leaner) variants.push_back({in_bf16, set_to("optim", each)});
  } else {
    if (has_wide_gradients()) variants.push_back({set_to("gradient_dtype", GradientDtype::bf16)});
    for (const Optimizer each : leaner) variants.push_back({set_to("optim", each)});
  }
  if (recipe_.double_quant) return variants;
  // Where weights are not in 4 bits the recipe refuses double_quant, so these variants drop out.
  const size_t wider = variants.size();
  variants.push_back({{"double_quant", "true"}});
  for (size_t i = 0; i < wider; ++i)
    variants.push_back(joined(variants[i], {{"double_quant", "true"}}));
  return variants;
}

std::vector<Overrides> ChangeSearch::smaller_adapters() const {
  std::vector<Overrides> variants;
  if (!recipe_.adapter.empty() || formats::is_idle_key(recipe_.method, "lora_r")) return variants;
  for (int64_t r = recipe_.lora_r / 2; r >= 1; r /= 2)
    variants.push_back({{"lora_r", std::to_string(r)}});
  const std::vector<std::string> all_linear{"all-linear"};
  if (recipe_.target_modules == all_linear)
    variants.push_back({{"lora_r", "1"},
                        {"target_modules", models::query_value_modules(models::stack_of(model_))}});
  return variants;
}

// Fewer answers side by side are the same answers.
std::vector<Overrides> ChangeSearch::fewer_answers() const {
  std::vector<Overrides> variants{Overrides{}};
  const auto generation = spec_of({}).generation;
  if (!generation) return variants;
  for (int64_t batch = generation->sequences / 2; batch >= 1; batch /= 2)
    variants.push_back({{"batch", std::to_string(batch)}});
  return variants;
}

std::vector<Method> ChangeSearch::adapter_methods() const {
  if (model_.stored) return {};
  const auto leaner = methods::method_of(recipe_.method).leaner;
  return {leaner.begin(), leaner.end()};
}

// Where linears are not in 4 bits the recipe refuses it, so these variants drop out.
std::vector<Overrides> ChangeSearch::experts_in_4_bits(const std::vector<Overrides>& others) const {
  std::vector<Overrides> variants;
  if (model_.num_experts == 0 || model_.stored || recipe_.load_experts_in_4bit) return variants;
  for (const Overrides& other : others)
    variants.push_back(joined(other, {{"load_experts_in_4bit", "true"}}));
  return variants;
}

std::vector<ChangeSearch::Stage> ChangeSearch::stages() const {
  const int64_t whole = recipe_.max_length;
  const int64_t length = whole - kept_tokens();
  const int64_t floor = std::min(kShortRow, length / 4);
  const std::vector<Overrides> other_types = numerics();
  std::vector<Overrides> unchanged_or_types{Overrides{}};
  unchanged_or_types.insert(unchanged_or_types.end(), other_types.begin(), other_types.end());

  std::vector<Overrides> other_methods;
  for (const Method method : adapter_methods()) {
    Overrides named{set_to("method", method)};
    if (always_in_4_bits(method) && recipe_.is_given("load_in_4bit"))
      named.emplace_back("load_in_4bit", "true");
    for (const Overrides& types : unchanged_or_types) other_methods.push_back(joined(named, types));
  }
  std::vector<Overrides> all = unchanged_or_types;
  all.insert(all.end(), other_methods.begin(), other_methods.end());

  // A LoRA adapter on 4-bit weights learns nearly the same as one on 16-bit weights, so it is tried
  // before shorter rows. Full training is changed to an adapter only when shorter rows do not help.
  std::vector<Stage> stages{{fewer_answers(), {whole}}, {other_types, {whole}}};
  const bool is_full = methods::method_of(recipe_.method).trains_weights;
  if (is_full) {
    stages.push_back({unchanged_or_types, halvings(length / 2, floor)});
    stages.push_back({other_methods, halvings(length, floor)});
  } else {
    stages.push_back({other_methods, {whole}});
    stages.push_back({experts_in_4_bits(all), {whole}});
    stages.push_back({all, halvings(length / 2, floor)});
  }
  std::vector<Overrides> smaller;
  for (const Overrides& other : all)
    if (!is_full || !other.empty())
      for (const Overrides& adapter : smaller_adapters()) smaller.push_back(joined(other, adapter));
  stages.push_back({smaller, halvings(length, floor)});
  all.insert(all.end(), smaller.begin(), smaller.end());
  stages.push_back({all, halvings(floor / 2, kShortestRow)});
  return stages;
}

ChangeSearch::Candidate* ChangeSearch::longest(const Stage& stage, const Budget& budget) {
  if (stage.variants.empty()) return nullptr;
  const auto changed = [&](size_t length, size_t variant) {
    Overrides overrides = stage.variants[variant];
    if (stage.lengths[length] == recipe_.max_length) return overrides;
    return joined(std::move(overrides), of_length(stage.lengths[length]));
  };
  const size_t last = stage.variants.size() - 1;
  const size_t length = first_fitting(stage.lengths.size(),
                                      [&](size_t i) { return can_fit(changed(i, last), budget); });
  if (length == stage.lengths.size()) return nullptr;
  const size_t variant =
      first_fitting(last + 1, [&](size_t i) { return can_fit(changed(length, i), budget); });
  return fastest(changed(length, variant), budget);
}

std::vector<Saving> ChangeSearch::all_savings() const {
  // Where host and device memory are the same, offloading saves nothing, so it is tried only if the
  // recipe already has it.
  std::vector<Saving> all(kSavings.begin(), kSavings.end());
  size_t offloading = kOffloading;
  if (recipe_.recompute == Recompute::automatic) {
    all.assign(kOpenSavings.begin(), kOpenSavings.end());
    offloading = kOpenSavings.size() - 1;
  }
  if (target_.host_reaches_device())
    all.resize(all.size() - (recipe_.activation_offloading ? 1 : offloading));
  const size_t own = all.size();
  if (rank_grid(recipe_).ranks() == 1) return all;
  for (const formats::Strategy strategy : kStrategies)
    if (strategy > recipe_.strategy)
      for (size_t i = 0; i < own; ++i) {
        all.push_back(all[i]);
        all.back().strategy = strategy;
      }
  return all;
}

void ChangeSearch::add_streaming(Overrides& overrides) const {
  const auto method = std::ranges::find(overrides, "method", &Overrides::value_type::first);
  const Method changed = method == overrides.end()
                             ? recipe_.method
                             : base::from_word<Method>(method->second).value_or(recipe_.method);
  const bool is_full = methods::method_of(changed).trains_weights;
  using formats::OffloadOptimizer;
  if (!recipe_.offload_params) overrides.emplace_back("offload_params", "true");
  if (is_full && (recipe_.offload_optimizer == OffloadOptimizer::none ||
                  recipe_.offload_optimizer == OffloadOptimizer::stream))
    overrides.push_back(set_to("offload_optimizer", OffloadOptimizer::automatic));
  if (recipe_.offload_window > 0) overrides.emplace_back("offload_window", "0");
}

Overrides ChangeSearch::with_rows(Overrides overrides, const Saving& saving, int64_t rows) const {
  if (saving.recompute != recipe_.recompute)
    overrides.push_back(set_to("recompute", saving.recompute));
  if (saving.offloads != recipe_.activation_offloading)
    overrides.emplace_back("activation_offloading", saving.offloads ? "true" : "false");
  if (saving.streams) add_streaming(overrides);
  if (saving.strategy) overrides.push_back(set_to("strategy", *saving.strategy));
  const int64_t now = recipe_.per_device_train_batch_size;
  if (rows == now) return overrides;
  const int64_t steps = recipe_.gradient_accumulation_steps * (now / rows);
  overrides.emplace_back("per_device_train_batch_size", std::to_string(rows));
  overrides.emplace_back("gradient_accumulation_steps", std::to_string(steps));
  return overrides;
}

ChangeSearch::Candidate* ChangeSearch::fitting(const Overrides& overrides, const Budget& budget) {
  for (const bool updates_on_device : {false, true}) {
    Candidate* candidate = sized(overrides, updates_on_device);
    if (candidate == nullptr) return nullptr;
    const bool fits_host = candidate->bytes.host_bytes <= budget.host_bytes;
    if (fits_host && candidate->bytes.device_bytes <= budget.device_bytes) return candidate;
    const auto& other_bytes = candidate->other_host_bytes;
    if (fits_host || !other_bytes || *other_bytes > budget.host_bytes) return nullptr;
  }
  return nullptr;
}

std::vector<int64_t> ChangeSearch::row_choices() const {
  const int64_t now = recipe_.per_device_train_batch_size;
  // KTO's estimate pairs answers within a micro-batch, so another size of micro-batch would change
  // the result.
  const bool is_fixed = recipe_.optim_in_backward || mismatch_batch(recipe_) > 0;
  return is_fixed ? std::vector<int64_t>{now} : micro_batches(now);
}

bool ChangeSearch::can_fit(const Overrides& base, const Budget& budget) {
  const int64_t rows = row_choices().back();
  // The last savings nearly always take the least memory, so they are tried first.
  return std::any_of(savings_.rbegin(), savings_.rend(), [&](const Saving& saving) {
    return fitting(with_rows(base, saving, rows), budget) != nullptr;
  });
}

ChangeSearch::Candidate* ChangeSearch::fastest(const Overrides& base, const Budget& budget) {
  const std::vector<int64_t> sizes = row_choices();
  Candidate* best = nullptr;
  for (const Saving& saving : savings_) {
    const size_t at = first_fitting(sizes.size(), [&](size_t i) {
      return fitting(with_rows(base, saving, sizes[i]), budget) != nullptr;
    });
    if (at == sizes.size()) continue;
    Candidate* candidate = fitting(with_rows(base, saving, sizes[at]), budget);
    if (best == nullptr || candidate->seconds_per_token < best->seconds_per_token) best = candidate;
  }
  return best;
}

TrainingSpec ChangeSearch::spec_of(const Overrides& overrides, bool updates_on_device) const {
  const Recipe changed = with_overrides(recipe_, overrides);
  TrainingSpec spec = training_spec(changed, model_, target_, documents_);
  if (updates_on_device) spec.streaming.update_on_host = false;
  // If any recompute mode fits, keeping only the layers' inputs does.
  if (changed.recompute == Recompute::automatic) spec.recompute = Recompute::layer;
  return spec;
}

ChangeSearch::Candidate* ChangeSearch::sized(const Overrides& overrides, bool updates_on_device) {
  const auto [entry, is_new] = candidates_.try_emplace({to_string(overrides), updates_on_device});
  std::optional<Candidate>& candidate = entry->second;
  if (is_new) {
    try {
      TrainingSpec spec = spec_of(overrides, updates_on_device);
      const Recipe changed = with_overrides(recipe_, overrides);
      const StreamingChoice open = streaming_choice(changed, spec, target_);
      spec.streaming.window_bytes = 0;  // copies that begin ahead take more: this is a lower bound
      const JobSize size = size_by_layers(spec, target_, rates_);
      const auto& bytes = size.lower_bound_bytes;
      candidate = Candidate{overrides,
                            {bytes[0], bytes[1] + bytes[2]},
                            size.step_seconds / tokens_per_step(spec),
                            false,
                            open.chooses_window || changed.recompute == Recompute::automatic,
                            updates_on_device};
      // The host holds the same tensors in either case, but copies of them only if updates run on
      // the host.
      if (open.chooses_updates && !updates_on_device)
        candidate->other_host_bytes = size.lasting_bytes[1] + size.lasting_bytes[2];
    } catch (const base::UserError&) {
      // The recipe refuses this combination, so it is not a candidate.
    }
  }
  return candidate ? &*candidate : nullptr;
}

void ChangeSearch::plan_whole(Candidate& candidate) {
  const TrainingSpec spec = spec_of(candidate.overrides, candidate.updates_on_device);
  const Job job = plan_training(spec, target_);
  const auto& spaces = job.layout.spaces;
  candidate.bytes = {spaces[0].arena_bytes, spaces[1].arena_bytes + spaces[2].arena_bytes};
  candidate.seconds_per_token = size_of(job, spec, rates_).step_seconds / tokens_per_step(spec);
  candidate.is_whole = true;
}

}  // namespace snug::plan
