#include "plan/fit.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "base/error.h"
#include "plan/change_search.h"

namespace snug::plan {
namespace {

// "12345678901 bytes (11.50 GiB)": the number can be pasted into a recipe.
std::string exact(int64_t bytes) {
  return fmt::format("{} bytes ({})", bytes, readable_bytes(bytes));
}

std::string device_problem(const PlanDocument& plan, int64_t budget) {
  const int64_t planned = plan.device.report.peak_bytes;
  std::string text = fmt::format(
      "the job does not fit: it plans {} on the device and the budget is {}, {} too little.",
      exact(planned), exact(budget), exact(planned - budget));
  if (plan.card && budget == plan.card->arena_bytes())
    text += fmt::format(" The budget is what {}'s {} leave beside {} outside the arena ({}).",
                        plan.card->name, readable_bytes(plan.card->memory_bytes),
                        readable_bytes(plan.card->outside_bytes + plan.card->reserved_bytes),
                        plan.card->is_here ? "measured" : "assumed");
  return text;
}

// Bytes of the host that a job may take: what the user gives it; else, beside a card that is here,
// what the machine has left. Nothing where that is not known, or where the device's memory is the
// host's and limits both.
std::optional<int64_t> host_memory(const formats::Recipe& recipe, const PlanDocument& plan,
                                   const program::Target& target) {
  if (recipe.host_memory > 0) return recipe.host_memory;
  if (plan.card && plan.card->is_here) return target.capacity_bytes(program::Space::pinned_host);
  return std::nullopt;
}

std::string host_problem(const formats::Recipe& recipe, const PlanDocument& plan, int64_t memory) {
  const int64_t arenas = plan.host.report.peak_bytes;
  const int64_t planned = arenas + plan.outside_bytes;
  return fmt::format(
      "the job does not fit: it plans {} of host memory ({} in arenas, {} outside them) and {} {}, "
      "{} too little.",
      exact(planned), readable_bytes(arenas), readable_bytes(plan.outside_bytes),
      recipe.host_memory > 0 ? "host_memory is" : "the machine has left", exact(memory),
      exact(planned - memory));
}

std::string reading_problem(const formats::Recipe& recipe, int64_t bytes) {
  return fmt::format(
      "the job does not fit: reading the data takes up to {} of host memory and host_memory is {}, "
      "{} too little. Raise host_memory; no other key changes what reading takes.",
      exact(bytes), exact(recipe.host_memory), exact(bytes - recipe.host_memory));
}

std::string advice(const Change& change) {
  return fmt::format(" The cheapest change that fits: {} (plans {} on the device, {} on the host).",
                     to_string(change.overrides), readable_bytes(change.device_bytes),
                     readable_bytes(change.host_bytes));
}

std::string no_advice(const std::optional<Change>& least) {
  if (!least) return " No change that snug knows makes it fit.";
  return fmt::format(
      " No change that snug knows makes it fit: the least device memory it found is {}, with {}. "
      "Give it that much, or take a smaller model.",
      exact(least->device_bytes), to_string(least->overrides));
}

std::string no_host_advice(const formats::Recipe& recipe) {
  return fmt::format(" No change that snug knows makes it fit: {}.",
                     recipe.host_memory > 0 ? "raise host_memory" : "free memory of the host");
}

}  // namespace

Verdict judge_fit(const formats::Recipe& recipe, const models::ModelSource& model,
                  const PlanDocument& plan, const program::Target& target, const RowShape& shape) {
  if (recipe.host_memory > 0 && plan.reading_bytes > recipe.host_memory)
    return {.fits = false, .change = {}, .message = reading_problem(recipe, plan.reading_bytes)};
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const std::optional<int64_t> host = host_memory(recipe, plan, target);
  const Budget budget{.device_bytes = target.capacity_bytes(program::Space::device),
                      .host_bytes = host ? *host - plan.outside_bytes : kNoLimit};
  const bool device_fits = plan.device.report.peak_bytes <= budget.device_bytes;
  const bool host_fits = plan.host.report.peak_bytes <= budget.host_bytes;
  if (device_fits && host_fits) return {};

  ChangeSearch search(recipe, model.config, target, shape);
  const std::optional<Change> change = search.cheapest(budget);
  Verdict verdict{.fits = false, .change = {}, .message = {}};
  verdict.message =
      device_fits ? host_problem(recipe, plan, *host) : device_problem(plan, budget.device_bytes);
  if (change) {
    SNUG_CHECK(!change->overrides.empty(), "the job that does not fit is named as what does");
    verdict.change = to_string(change->overrides);
    verdict.message += advice(*change);
  } else {
    verdict.message += device_fits ? no_host_advice(recipe) : no_advice(search.least());
  }
  return verdict;
}

void require_room_to_read(const formats::Recipe& recipe, int64_t reading_bytes) {
  if (recipe.host_memory <= 0 || reading_bytes <= recipe.host_memory) return;
  const auto given = recipe.given.find("host_memory");
  throw base::UserError(reading_problem(recipe, reading_bytes),
                        given == recipe.given.end() ? base::Location{} : given->second,
                        kDoesNotFitExitCode);
}

void refuse(const formats::Recipe& recipe, const Verdict& verdict) {
  const auto given = recipe.given.find("device_memory");
  throw base::UserError(verdict.message,
                        given == recipe.given.end() ? base::Location{} : given->second,
                        kDoesNotFitExitCode);
}

void require_fit(const formats::Recipe& recipe, const models::ModelSource& model,
                 const PlanDocument& plan, const program::Target& target, const RowShape& shape) {
  const Verdict verdict = judge_fit(recipe, model, plan, target, shape);
  if (!verdict.fits) refuse(recipe, verdict);
}

}  // namespace snug::plan
