#include "cli/plan_serving.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/console.h"
#include "base/error.h"
#include "cli/open_target.h"
#include "cli/planned_inference.h"
#include "formats/recipe/recipe.h"
#include "models/families/families.h"

namespace snug::cli {
namespace {

using base::TokenStream;

// A group of layers, with what its pools hold.
struct GroupLine {
  models::KeyPool pool;
  int64_t token_bytes = 0;
  int64_t tokens = 0;
};

std::vector<GroupLine> lines_of(const plan::PlannedServing& planned) {
  const models::Stack stack = models::stack_of(planned.spec.model);
  std::vector<GroupLine> lines;
  for (const models::KeyPool& pool : planned.job.key_pools)
    lines.push_back({pool,
                     plan::token_bytes(stack, pool.group, planned.spec.shape, planned.spec.compute),
                     pool.pages * planned.spec.shape.page_tokens});
  return lines;
}

std::string name_of(const models::KeyGroup& group) {
  if (group.stream == TokenStream::encoder) return "encoder";
  return group.window > 0 ? fmt::format("window of {}", group.window) : "full attention";
}

// The tokens that sequences of any length can have in all. A window's pools hold a part of each
// sequence, so that they say something only where nothing sees all tokens.
int64_t tokens_in_all(const plan::PlannedServing& planned) {
  for (const models::KeyPool& pool : planned.job.key_pools)
    if (pool.group == models::KeyGroup{}) return pool.pages * planned.spec.shape.page_tokens;
  return planned.held_sequences * planned.spec.shape.capacity.decoder();
}

// The tokens that max_length stands for.
int64_t length_of_prompt(const plan::InferenceShape& shape) {
  return shape.capacity.has_encoder() ? shape.capacity[TokenStream::encoder]
                                      : shape.capacity.decoder();
}

// The bytes of adapters that requests choose from.
int64_t slot_bytes(const plan::PlannedServing& planned) {
  int64_t bytes = 0;
  for (const program::Tensor& tensor : plan::adapter_tensors(planned.job)) bytes += tensor.bytes();
  return bytes;
}

// The bytes of what layers without keys keep for each sequence that may run.
int64_t state_bytes(const plan::PlannedServing& planned) {
  const std::vector<int64_t>& layers = planned.spec.model.recurrent_layers;
  int64_t bytes = 0;
  for (const program::Tensor& tensor : planned.job.find(program::ProgramName::decode)->tensors)
    if (tensor.role == program::Role::kv_cache && !tensor.is_view() &&
        std::ranges::binary_search(layers, tensor.layer))
      bytes += tensor.bytes();
  return bytes;
}

nlohmann::ordered_json json_of(const plan::PlannedServing& planned) {
  const plan::InferenceShape& shape = planned.spec.shape;
  nlohmann::ordered_json json = {{"fits", true},
                                 {"device_bytes", planned.document.device.report.peak_bytes},
                                 {"max_length", length_of_prompt(shape)},
                                 {"sequences", planned.held_sequences},
                                 {"tokens", tokens_in_all(planned)},
                                 {"running_sequences", shape.sequences},
                                 {"prefill_tokens", shape.prefill_tokens},
                                 {"page_tokens", shape.page_tokens}};
  if (const methods::LoraSlots& slots = planned.spec.slots; !slots.empty())
    json["adapters"] = {{"slots", slots.slots},
                        {"rank", slots.rank},
                        {"modules", slots.modules.size()},
                        {"bytes", slot_bytes(planned)}};
  if (const int64_t states = state_bytes(planned); states > 0)
    json["states"] = {{"sequences", shape.sequences}, {"bytes", states}};
  for (const GroupLine& line : lines_of(planned))
    json["pools"].push_back({{"layers", name_of(line.pool.group)},
                             {"pages", line.pool.pages},
                             {"token_bytes", line.token_bytes},
                             {"bytes", line.tokens * line.token_bytes}});
  return json;
}

void print_serving(const plan::PlannedServing& planned) {
  const plan::InferenceShape& shape = planned.spec.shape;
  const int64_t held = planned.held_sequences;
  base::print(
      "the cache holds {} sequence{} of {} tokens, or {} tokens in all\n"
      "{} may run at one time; prompts are read {} tokens\n\n",
      held, held == 1 ? "" : "s", length_of_prompt(shape), tokens_in_all(planned), shape.sequences,
      shape.capacity.has_encoder() ? fmt::format("whole, at most {}", shape.encoder_tokens)
                                   : fmt::format("in chunks of {}", shape.prefill_tokens));
  base::print("{:<20}{:>10}{:>16}{:>14}\n", "keys and values", "pages", "bytes per token",
              "memory");
  for (const GroupLine& line : lines_of(planned))
    base::print("{:<20}{:>10}{:>16}{:>14}\n", name_of(line.pool.group), line.pool.pages,
                line.token_bytes, plan::readable_bytes(line.tokens * line.token_bytes));
  if (const int64_t states = state_bytes(planned); states > 0)
    base::print("\nrecurrent states of {} sequence{}: {}\n", shape.sequences,
                shape.sequences == 1 ? "" : "s", plan::readable_bytes(states));
  if (const methods::LoraSlots& slots = planned.spec.slots; !slots.empty())
    base::print("\n{} adapter{} of at most rank {} in {} modules: {}\n", slots.slots,
                slots.slots == 1 ? "" : "s", slots.rank, slots.modules.size(),
                plan::readable_bytes(slot_bytes(planned)));
  base::print("\na page has {} tokens; all of the job takes {} of {}\n", shape.page_tokens,
              plan::readable_bytes(planned.document.device.report.peak_bytes),
              plan::readable_bytes(planned.document.device.capacity_bytes));
}

}  // namespace

PlanMode take_plan_mode(Request& request) {
  PlanMode mode = PlanMode::train;
  request.take_words([&](const std::string& key, const std::string& value) {
    if (key != "mode") return false;
    const auto known = base::from_word<PlanMode>(value);
    if (!known)
      base::throw_user_error("'mode' is '{}'; it is one of {}", value,
                             fmt::join(base::all_words<PlanMode>(), ", "));
    mode = *known;
    return true;
  });
  return mode;
}

std::string plan_mode_help() {
  return fmt::format(
      "plan:\n"
      "  mode={}\n"
      "      what is planned (default {}). serve: how many sequences of max_length tokens the\n"
      "      cache of keys and values holds in the memory that device_memory leaves;\n"
      "      per_device_train_batch_size is how many run at one time (default 16)\n\n",
      fmt::join(base::all_words<PlanMode>(), "|"), base::word_of(PlanMode::train));
}

int plan_serving(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  recipe.require("model");
  if (!recipe.picture.empty())
    recipe.fail("picture", "is the page of a training plan; leave it out with mode=serve");
  const std::unique_ptr<program::Target> target = open_target(recipe);
  const plan::PlannedServing planned = planned_serving(recipe, *target);
  if (request.json)
    base::print("{}\n", json_of(planned).dump(2));
  else
    print_serving(planned);
  return 0;
}

}  // namespace snug::cli
