#include "generate/inference_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "formats/lora_config.h"
#include "plan/document.h"
#include "plan/fit.h"
#include "plan/spec.h"

namespace snug::generate {
namespace {

using program::Space;

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

int64_t arena_bytes(const plan::Job& job, Space space) {
  const auto index = static_cast<size_t>(space);
  return index < job.layout.spaces.size() ? job.layout.spaces[index].arena_bytes : 0;
}

class Planner {
 public:
  Planner(const formats::Recipe& recipe, const program::Target& target)
      : recipe_(recipe), target_(target) {}

  // With the largest chunk that fits; nothing when none does.
  std::optional<InferencePlan> largest(plan::InferenceSpec spec) {
    while (true) {
      InferencePlan plan{spec, plan::plan_inference(spec, target_)};
      if (fits(plan.job)) return plan;
      device_bytes_ = arena_bytes(plan.job, Space::device);
      host_bytes_ = host_bytes(plan.job);
      if (spec.prefill_tokens <= kLeastPrefillTokens) return std::nullopt;
      spec.prefill_tokens = std::max(spec.prefill_tokens / 2, kLeastPrefillTokens);
    }
  }

  [[noreturn]] void refuse(const plan::InferenceSpec& spec) {
    const int64_t device = device_bytes_;
    const int64_t host = host_bytes_;
    const int64_t budget = target_.capacity_bytes(Space::device);
    const bool is_device = device > budget;
    const std::string problem =
        is_device ? fmt::format(
                        "the job does not fit: with the smallest chunks it plans {} bytes "
                        "({}) on the device and the budget is {} bytes ({}), {} too little",
                        device, plan::readable_bytes(device), budget, plan::readable_bytes(budget),
                        plan::readable_bytes(device - budget))
                  : fmt::format(
                        "the job does not fit: it plans {} bytes of host memory, and "
                        "host_memory is {}",
                        host, recipe_.host_memory);
    const std::optional<std::string> change = cheapest(spec);
    const std::string advice =
        change ? fmt::format("The cheapest change that fits: {}", *change)
               : fmt::format("No change that snug knows makes it fit: {}",
                             is_device ? more_device_memory(spec)
                                       : fmt::format("it needs host_memory={}", host));
    const auto given = recipe_.given.find(is_device ? "device_memory" : "host_memory");
    throw base::UserError(problem + ". " + advice,
                          given == recipe_.given.end() ? base::Location{} : given->second,
                          plan::kDoesNotFitExitCode);
  }

 private:
  static int64_t host_bytes(const plan::Job& job) {
    return arena_bytes(job, Space::pinned_host) + arena_bytes(job, Space::host);
  }

  bool fits(const plan::Job& job) const {
    return arena_bytes(job, Space::device) <= target_.capacity_bytes(Space::device) &&
           (recipe_.host_memory == 0 || host_bytes(job) <= recipe_.host_memory);
  }

  // Fewer sequences side by side give the same answers, only slower; weights in 4 bits nearly the
  // same.
  std::optional<std::string> cheapest(plan::InferenceSpec spec) {
    if (const auto batch = fewer_sequences(spec)) return batch;
    if (spec.quantization) return std::nullopt;
    spec.quantization = passes::QuantizeOptions{.nested = recipe_.double_quant, .kept = {}};
    if (largest(spec)) return "load_in_4bit=true";
    if (const auto batch = fewer_sequences(spec)) return "load_in_4bit=true " + *batch;
    return std::nullopt;
  }

  std::optional<std::string> fewer_sequences(plan::InferenceSpec spec) {
    while (spec.sequences > 1) {
      spec.sequences /= 2;
      if (largest(spec)) return fmt::format("batch={}", spec.sequences);
    }
    return std::nullopt;
  }

  // Of what was planned last, which takes the least, and what makes it so.
  std::string more_device_memory(const plan::InferenceSpec& spec) const {
    std::string least = recipe_.device_memory > 0 ? fmt::format("device_memory={}", device_bytes_)
                                                  : plan::readable_bytes(device_bytes_);
    if (!spec.quantization) least += " load_in_4bit=true";
    if (spec.sequences > 1) least += " batch=1";
    return fmt::format("the least it takes is {}; take a smaller model, or fewer tokens", least);
  }

  const formats::Recipe& recipe_;
  const program::Target& target_;
  int64_t device_bytes_ = 0;  // of the last plan that did not fit
  int64_t host_bytes_ = 0;
};

}  // namespace

InferencePlan plan_in_budget(const formats::Recipe& recipe, const models::ModelConfig& model,
                             const InferenceShape& shape, const program::Target& target) {
  const plan::InferenceSpec spec = spec_of(recipe, model, shape, target);
  Planner planner(recipe, target);
  if (std::optional<InferencePlan> plan = planner.largest(spec)) return std::move(*plan);
  planner.refuse(spec);
}

}  // namespace snug::generate
