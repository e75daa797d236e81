#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "formats/adapter/adapter_config.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/recipe/recipe.h"
#include "methods/method.h"
#include "models/families/families.h"
#include "models/weights.h"
#include "plan/job/assembly.h"
#include "plan/spec/adapter_slots.h"
#include "plan/spec/adapter_tables.h"
#include "plan/spec/adapter_widths.h"
#include "plan/spec/stream_spec.h"

namespace snug::plan {
namespace {

// A table that the file holds only under the head's name has its element width there.
void add_widths_of_head(const std::string& adapter, InferenceSpec& spec) {
  const formats::SafetensorsFile file = formats::open_adapter_file(adapter);
  for (const std::string& table : spec.lora.tables)
    if (formats::find_table(file, table) == nullptr)
      spec.adapter_widths.others.emplace(formats::adapter_key(table),
                                         spec.adapter_widths.of(spec.lora.head + ".weight"));
}

InferenceSpec spec_of(const InferenceInputs& inputs) {
  const formats::Recipe& recipe = inputs.recipe;
  check_compute_type(recipe, inputs.model);
  InferenceSpec spec;
  spec.model = inputs.model;
  spec.compute = compute_type(recipe, inputs.target);
  spec.quantization = quantization(recipe, inputs.model);
  spec.shape = inputs.shape;
  spec.shape.quantized_cache = recipe.kv_cache_dtype == formats::CacheDtype::int8;
  if (recipe.init == formats::Init::random) spec.init_seed = recipe.seed;
  spec.slots = adapter_slots(recipe, spec.model, spec.compute);
  if (recipe.adapter.empty()) return spec;
  const formats::AdapterConfig adapter = formats::read_adapter_config(recipe.adapter);
  const methods::Method& method = methods::method_of(adapter);
  spec.method = method.kind;
  const methods::MethodOptions options = method.options(adapter);
  spec.lora = options.lora;
  spec.prompt = options.prompt;
  spec.adapter_widths = adapter_widths(recipe.adapter);
  if (std::holds_alternative<formats::LoraConfig>(adapter)) {
    add_adapter_tables(spec.model, recipe.adapter, spec.lora);
    add_widths_of_head(recipe.adapter, spec);
  }
  method.refuse(spec.method_options(), base_model(spec.model, spec.quantization));
  return spec;
}

// The bytes of a planned job's arenas.
Budget arenas_of(const PlanDocument& document) {
  return {.device_bytes = document.device.report.peak_bytes,
          .host_bytes = document.host.report.peak_bytes};
}

class Planner : public Changes {
 public:
  Planner(const InferenceInputs& inputs, const MeasureProcess& measure)
      : recipe_(inputs.recipe),
        spec_(spec_of(inputs)),
        target_(inputs.target),
        measure_(measure),
        sequences_key_(inputs.sequences_key) {}

  PlannedInference plan() {
    PlannedInference planned = with_largest_chunk(
        spec_, [&](const PlanDocument& document) { return fits(recipe_, document, target_); });
    if (fits(recipe_, planned.document, target_)) return planned;
    keep_least({}, arenas_of(planned.document));
    refuse(recipe_, misfit(recipe_, planned.document, target_, *this));
  }

  // Plans with the largest pools that fit, from pools on that hold one sequence.
  PlannedServing serve() {
    PlannedInference least = plan();
    const models::Stack stack = models::stack_of(spec_.model);
    const auto with_room_for = [&](int64_t sequences) {
      InferenceSpec spec = least.spec;
      spec.shape.pages = pages_of_sequences(spec.shape, stack, sequences);
      return planned_with(spec);
    };
    // A sequence that waits is read anew where states are kept, which only running ones have.
    const int64_t most = most_held(least, stack);
    for (int64_t held = stack.has_states() ? std::min(most, spec_.shape.sequences) : most; held > 1;
         --held)
      if (PlannedInference planned = with_room_for(held); fits(recipe_, planned.document, target_))
        return {{std::move(planned)}, held};
    return {{std::move(least)}, 1};
  }

  // The changes are fewer parallel sequences, which gives the same answers more slowly, and weights
  // in 4 bits, which gives nearly the same answers.
  std::optional<Change> cheapest(const Budget& budget) override {
    InferenceSpec spec = spec_;
    if (auto change = with_fewer_sequences(spec, {}, budget)) return change;
    if (spec.quantization) return std::nullopt;
    spec.quantization =
        passes::QuantizeOptions{.nested = recipe_.double_quant,
                                .kept = models::matrices_in_16_bits(models::stack_of(spec.model))};
    const Overrides in_4_bits{{"load_in_4bit", "true"}};
    if (auto change = with(spec, in_4_bits, budget)) return change;
    return with_fewer_sequences(spec, in_4_bits, budget);
  }

  std::optional<Change> least() const override { return least_; }

 private:
  // How many sequences the pools hold if they get the rest of the device's memory. Slots are i32,
  // so that a pool has no more rows than that.
  int64_t most_held(const PlannedInference& least, const models::Stack& stack) const {
    const InferenceShape& shape = least.spec.shape;
    int64_t bytes = 0;
    int64_t most_rows = 1;
    for (const models::KeyGroup& group : models::key_groups(stack)) {
      const int64_t rows = pages_of_sequence(shape, group) * shape.page_tokens;
      bytes += rows * token_bytes(stack, group, shape, spec_.compute);
      most_rows = std::max(most_rows, rows);
    }
    if (bytes == 0) return shape.sequences;  // no layer has keys and values
    const int64_t left = budget_of(recipe_, least.document, target_).device_bytes -
                         least.document.device.report.peak_bytes;
    return std::min(1 + left / bytes, std::numeric_limits<int32_t>::max() / most_rows);
  }

  // The smallest possible capacity of an encoder's pass: the longest prompt.
  static int64_t longest_prompt(const InferenceSpec& spec) {
    return spec.shape.capacity.has_encoder() ? spec.shape.capacity[base::TokenStream::encoder] : 0;
  }

  // Plans with the largest prefill chunk that fits; with the smallest one if none fits.
  template <typename Fits>
  PlannedInference with_largest_chunk(InferenceSpec spec, const Fits& fits_in) {
    while (true) {
      PlannedInference planned = planned_with(spec);
      const int64_t least_encoder = longest_prompt(spec);
      const bool is_least = spec.shape.prefill_tokens <= kMinPrefillTokens &&
                            spec.shape.encoder_tokens <= least_encoder;
      if (is_least || fits_in(planned.document)) return planned;
      spec.shape.prefill_tokens = std::max(spec.shape.prefill_tokens / 2, kMinPrefillTokens);
      spec.shape.encoder_tokens = std::max(spec.shape.encoder_tokens / 2, least_encoder);
    }
  }

  // If host memory is limited, the memory outside the arenas is measured for the first job that is
  // planned. The others differ from it only in their arenas.
  PlannedInference planned_with(const InferenceSpec& spec) {
    Job job = plan_inference(spec, target_);
    PlanDocument document = describe(job, target_);
    if (host_limit(recipe_, target_)) {
      if (!process_) process_ = measure_(job);
      set_outside(document, process_->outside_bytes);
      document.held_bytes = process_->resident_peak_bytes;
    }
    return {{std::move(job), std::move(document), process_.value_or(ProcessBytes{})}, spec};
  }

  // The change that leads to this spec, if it fits.
  std::optional<Change> with(const InferenceSpec& spec, const Overrides& overrides,
                             const Budget& budget) {
    const auto fits_in = [&](const PlanDocument& document) {
      const Budget bytes = arenas_of(document);
      return bytes.device_bytes <= budget.device_bytes && bytes.host_bytes <= budget.host_bytes;
    };
    const PlanDocument document = with_largest_chunk(spec, fits_in).document;
    const Change change = keep_least(overrides, arenas_of(document));
    return fits_in(document) ? std::optional(change) : std::nullopt;
  }

  std::optional<Change> with_fewer_sequences(InferenceSpec spec, const Overrides& overrides,
                                             const Budget& budget) {
    while (spec.shape.sequences > 1) {
      spec.shape.sequences /= 2;
      Overrides fewer = overrides;
      fewer.emplace_back(std::string(sequences_key_), std::to_string(spec.shape.sequences));
      if (auto change = with(spec, fewer, budget)) return change;
    }
    return std::nullopt;
  }

  Change keep_least(const Overrides& overrides, const Budget& bytes) {
    Change change{overrides, bytes.device_bytes, bytes.host_bytes};
    if (!least_ || change.device_bytes < least_->device_bytes) least_ = change;
    return change;
  }

  const formats::Recipe& recipe_;
  const InferenceSpec spec_;
  const program::Target& target_;
  const MeasureProcess& measure_;
  std::string_view sequences_key_;
  std::optional<ProcessBytes> process_;
  std::optional<Change> least_;
};

}  // namespace

PlannedInference assemble_inference(const InferenceInputs& inputs, const MeasureProcess& measure) {
  return Planner(inputs, measure).plan();
}

PlannedServing assemble_serving(const InferenceInputs& inputs, const MeasureProcess& measure) {
  InferenceInputs of_one = inputs;
  of_one.shape.pages = pages_of_sequences(inputs.shape, models::stack_of(inputs.model), 1);
  return Planner(of_one, measure).serve();
}

}  // namespace snug::plan
