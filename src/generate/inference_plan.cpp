#include "generate/inference_plan.h"

#include <algorithm>
#include <optional>
#include <string>

#include "formats/lora_config.h"
#include "plan/document.h"
#include "plan/fit.h"
#include "plan/spec.h"
#include "runtime/process_memory.h"
#include "runtime/rehearsal.h"

namespace snug::generate {
namespace {

plan::InferenceSpec spec_of(const formats::Recipe& recipe, const models::ModelConfig& model,
                            const InferenceShape& shape, const program::Target& target) {
  plan::InferenceSpec spec;
  spec.model = model;
  spec.compute = plan::compute_type(recipe, target);
  spec.quantization = plan::quantization(recipe, model);
  spec.sequences = shape.sequences;
  spec.capacity = shape.capacity;
  spec.prefill_tokens = shape.prefill_tokens;
  spec.all_logits = shape.all_logits;
  if (recipe.adapter.empty()) return spec;
  const formats::LoraConfig adapter = formats::read_lora_config(recipe.adapter);
  spec.adapted = true;
  spec.lora.r = adapter.r;
  spec.lora.alpha = adapter.alpha;
  spec.lora.rslora = adapter.use_rslora;
  spec.lora.target_modules = adapter.target_modules;
  return spec;
}

// Bytes of a job's arenas.
plan::Budget arenas_of(const plan::PlanDocument& plan) {
  return {.device_bytes = plan.device.report.peak_bytes, .host_bytes = plan.host.report.peak_bytes};
}

class Planner : public plan::Changes {
 public:
  Planner(const formats::Recipe& recipe, const plan::InferenceSpec& spec, program::Target& target)
      : recipe_(recipe), spec_(spec), target_(target) {}

  InferencePlan plan() {
    InferencePlan plan = with_largest_chunk(
        spec_, [&](const auto& planned) { return plan::fits(recipe_, planned, target_); });
    const plan::PlanDocument planned = described(plan.job);
    if (plan::fits(recipe_, planned, target_)) return plan;
    keep_least({}, arenas_of(planned));
    plan::refuse(recipe_, plan::misfit(recipe_, planned, target_, *this));
  }

  // Fewer sequences side by side give the same answers, only slower; weights in 4 bits nearly the
  // same.
  std::optional<plan::Change> cheapest(const plan::Budget& budget) override {
    plan::InferenceSpec spec = spec_;
    if (auto change = with_fewer_sequences(spec, {}, budget)) return change;
    if (spec.quantization) return std::nullopt;
    spec.quantization = passes::QuantizeOptions{.nested = recipe_.double_quant, .kept = {}};
    const plan::Overrides in_4_bits{{"load_in_4bit", "true"}};
    if (auto change = with(spec, in_4_bits, budget)) return change;
    return with_fewer_sequences(spec, in_4_bits, budget);
  }

  std::optional<plan::Change> least() const override { return least_; }

 private:
  // Where none fits, with the smallest.
  template <typename Fits>
  InferencePlan with_largest_chunk(plan::InferenceSpec spec, const Fits& fits) {
    while (true) {
      InferencePlan plan{spec, plan::plan_inference(spec, target_)};
      if (spec.prefill_tokens <= kLeastPrefillTokens || fits(described(plan.job))) return plan;
      spec.prefill_tokens = std::max(spec.prefill_tokens / 2, kLeastPrefillTokens);
    }
  }

  // What lies outside the arenas is measured of the first job that is planned, where the host's
  // memory is limited: the others differ in their arenas alone.
  plan::PlanDocument described(const plan::Job& job) {
    plan::PlanDocument planned = plan::describe(job, target_);
    if (!plan::host_limit(recipe_, target_)) return planned;
    if (!outside_bytes_) {
      outside_bytes_ = runtime::rehearsed_outside_bytes(job, target_);
      reading_bytes_ = runtime::process_memory().resident_peak_bytes;
    }
    plan::set_outside(planned, *outside_bytes_);
    planned.reading_bytes = reading_bytes_;
    return planned;
  }

  // The change to this spec, if it fits.
  std::optional<plan::Change> with(const plan::InferenceSpec& spec,
                                   const plan::Overrides& overrides, const plan::Budget& budget) {
    const auto fits = [&](const plan::PlanDocument& planned) {
      const plan::Budget bytes = arenas_of(planned);
      return bytes.device_bytes <= budget.device_bytes && bytes.host_bytes <= budget.host_bytes;
    };
    const plan::PlanDocument planned = described(with_largest_chunk(spec, fits).job);
    const plan::Change change = keep_least(overrides, arenas_of(planned));
    return fits(planned) ? std::optional(change) : std::nullopt;
  }

  std::optional<plan::Change> with_fewer_sequences(plan::InferenceSpec spec,
                                                   const plan::Overrides& overrides,
                                                   const plan::Budget& budget) {
    while (spec.sequences > 1) {
      spec.sequences /= 2;
      plan::Overrides fewer = overrides;
      fewer.emplace_back("batch", std::to_string(spec.sequences));
      if (auto change = with(spec, fewer, budget)) return change;
    }
    return std::nullopt;
  }

  plan::Change keep_least(const plan::Overrides& overrides, const plan::Budget& bytes) {
    plan::Change change{overrides, bytes.device_bytes, bytes.host_bytes};
    if (!least_ || change.device_bytes < least_->device_bytes) least_ = change;
    return change;
  }

  const formats::Recipe& recipe_;
  const plan::InferenceSpec& spec_;
  program::Target& target_;
  std::optional<int64_t> outside_bytes_;
  int64_t reading_bytes_ = 0;
  std::optional<plan::Change> least_;
};

}  // namespace

InferencePlan plan_in_budget(const formats::Recipe& recipe, const models::ModelConfig& model,
                             const InferenceShape& shape, program::Target& target) {
  const plan::InferenceSpec spec = spec_of(recipe, model, shape, target);
  return Planner(recipe, spec, target).plan();
}

}  // namespace snug::generate
