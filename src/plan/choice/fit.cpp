#include "plan/choice/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/byte_size.h"
#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "plan/choice/change_search.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

// "12345678901 bytes (11.50 GiB)": the exact number can be pasted into a recipe.
std::string exact(int64_t bytes) {
  return fmt::format("{} bytes ({})", bytes, readable_bytes(bytes));
}

std::string device_problem(const PlanDocument& plan, int64_t budget) {
  const int64_t planned = plan.device.report.peak_bytes;
  std::string text = fmt::format(
      "the job does not fit: it plans {} on the device and the budget is {}, {} too little.",
      exact(planned), exact(budget), exact(planned - budget));
  if (plan.card && budget == plan.card->arena_bytes())
    text += fmt::format(" The budget is what {}'s {} leave next to {} outside the arena ({}).",
                        plan.card->name, readable_bytes(plan.card->memory_bytes),
                        readable_bytes(plan.card->outside_bytes + plan.card->reserved_bytes),
                        base::word_of(plan.card->is_here ? Basis::measured : Basis::assumed));
  return text;
}

// The resident memory of a process varies by this much from run to run.
constexpr int64_t kRunToRunBytes = 1 << 20;

// "47MiB": a value of host_memory with which a job of this many bytes is sure to fit.
std::string enough(int64_t bytes) {
  constexpr int64_t kUnit = 1 << 20;
  return base::exact_byte_size((bytes + kRunToRunBytes + kUnit - 1) / kUnit * kUnit);
}

int64_t job_bytes(const PlanDocument& plan) {
  return plan.host.report.peak_bytes + plan.outside_bytes;
}

// The number of ranks that share a machine's memory.
int64_t node_ranks(const formats::Recipe& recipe) { return recipe.devices_per_node(); }

bool has_room_to_read(const formats::Recipe& recipe, int64_t reading_bytes) {
  return recipe.host_memory <= 0 || reading_bytes * node_ranks(recipe) <= recipe.host_memory;
}

// `rank_memory`: the limit for one of the machine's ranks.
std::string host_problem(const formats::Recipe& recipe, const PlanDocument& plan,
                         int64_t rank_memory) {
  const int64_t ranks = node_ranks(recipe);
  const int64_t planned = job_bytes(plan) * ranks;
  const int64_t memory = recipe.host_memory > 0 ? recipe.host_memory : rank_memory * ranks;
  return fmt::format(
      "the job does not fit: it plans {} of host memory ({}{} in arenas, {} outside them) and {} "
      "{}, {} too little.",
      exact(planned), ranks > 1 ? fmt::format("for each of {} ranks ", ranks) : "",
      readable_bytes(plan.host.report.peak_bytes), readable_bytes(plan.outside_bytes),
      recipe.host_memory > 0 ? "host_memory is" : "the machine has left", exact(memory),
      exact(planned - memory));
}

// `needed`: what the whole job is known to take so far.
std::string reading_problem(const formats::Recipe& recipe, int64_t rank_bytes,
                            int64_t rank_needed) {
  const int64_t bytes = rank_bytes * node_ranks(recipe);
  const int64_t needed = rank_needed * node_ranks(recipe);
  return fmt::format(
      "the job does not fit: reading the data and the tokenizer takes up to {} of host memory and "
      "host_memory is {}, {} too little. Raise host_memory to {}; no other key changes what "
      "reading "
      "takes.",
      exact(bytes), exact(recipe.host_memory), exact(bytes - recipe.host_memory), enough(needed));
}

std::string advice(const Change& change) {
  return fmt::format(
      " The cheapest change that fits: {} (plans {}{} on the device, {} on the host).",
      to_string(change.overrides), change.takes_more_once_applied ? "at least " : "",
      readable_bytes(change.device_bytes), readable_bytes(change.host_bytes));
}

std::string no_advice(const std::optional<Change>& least) {
  if (!least) return " No change that snug knows makes it fit.";
  return fmt::format(
      " No change that snug knows makes it fit: the least device memory it found is {}{}. Give it "
      "that much, or take a smaller model.",
      exact(least->device_bytes),
      least->overrides.empty() ? "" : ", with " + to_string(least->overrides));
}

std::string no_host_advice(const formats::Recipe& recipe, const PlanDocument& plan) {
  return fmt::format(" No change that snug knows makes it fit: {}.",
                     recipe.host_memory > 0
                         ? "raise host_memory to " + enough(job_bytes(plan) * node_ranks(recipe))
                         : "free memory of the host");
}

}  // namespace

std::optional<int64_t> host_limit(const formats::Recipe& recipe, const program::Target& target) {
  if (recipe.host_memory > 0) return recipe.host_memory / node_ranks(recipe);
  const std::optional<program::DeviceFacts> card = target.device();
  if (card && card->is_here)
    return target.capacity_bytes(program::Space::pinned_host) / node_ranks(recipe);
  return std::nullopt;
}

Budget budget_of(const formats::Recipe& recipe, const PlanDocument& plan,
                 const program::Target& target) {
  const std::optional<int64_t> host = host_limit(recipe, target);
  return {.device_bytes = target.capacity_bytes(program::Space::device),
          .host_bytes = host ? *host - plan.outside_bytes : std::numeric_limits<int64_t>::max()};
}

bool fits(const formats::Recipe& recipe, const PlanDocument& plan, const program::Target& target) {
  const Budget budget = budget_of(recipe, plan, target);
  return has_room_to_read(recipe, plan.before_job_bytes()) &&
         plan.device.report.peak_bytes <= budget.device_bytes &&
         plan.host.report.peak_bytes <= budget.host_bytes;
}

Verdict misfit(const formats::Recipe& recipe, const PlanDocument& plan,
               const program::Target& target, Changes& changes) {
  Verdict verdict{.fits = false, .change = {}, .message = {}, .key = "host_memory"};
  if (!has_room_to_read(recipe, plan.before_job_bytes())) {
    verdict.message = reading_problem(recipe, plan.before_job_bytes(),
                                      std::max(plan.before_job_bytes(), job_bytes(plan)));
    return verdict;
  }
  const Budget budget = budget_of(recipe, plan, target);
  const bool device_fits = plan.device.report.peak_bytes <= budget.device_bytes;
  if (!device_fits) verdict.key = "device_memory";
  verdict.message = device_fits ? host_problem(recipe, plan, *host_limit(recipe, target))
                                : device_problem(plan, budget.device_bytes);
  if (const std::optional<Change> change = changes.cheapest(budget)) {
    SNUG_CHECK(!change->overrides.empty(), "the job that does not fit is named as what does");
    verdict.change = to_string(change->overrides);
    verdict.message += advice(*change);
  } else {
    verdict.message += device_fits ? no_host_advice(recipe, plan) : no_advice(changes.least());
  }
  return verdict;
}

Verdict judge_fit(const formats::Recipe& recipe, const models::ModelSource& model,
                  const PlanDocument& plan, const program::Target& target,
                  const JobDocuments& documents) {
  if (fits(recipe, plan, target)) return {};
  ChangeSearch search(recipe, model.config, target, documents);
  return misfit(recipe, plan, target, search);
}

void require_room_to_read(const formats::Recipe& recipe, int64_t reading_bytes) {
  if (has_room_to_read(recipe, reading_bytes)) return;
  refuse(recipe, {.fits = false,
                  .change = {},
                  .message = reading_problem(recipe, reading_bytes, reading_bytes),
                  .key = "host_memory"});
}

void refuse(const formats::Recipe& recipe, const Verdict& verdict) {
  const auto given = recipe.given.find(verdict.key);
  throw base::UserError(verdict.message,
                        given == recipe.given.end() ? base::Location{} : given->second,
                        kDoesNotFitExitCode);
}

}  // namespace snug::plan
