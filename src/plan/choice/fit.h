// Does a planned job fit its budgets, and if not, what is the cheapest change that makes it fit?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/config/config.h"
#include "plan/choice/change.h"
#include "plan/document/document.h"
#include "plan/spec/spec.h"
#include "program/ir/program.h"

namespace snug::formats {
struct Recipe;
}

namespace snug::plan {

inline constexpr int kDoesNotFitExitCode = 3;

struct Verdict {
  bool fits = true;
  std::string change;   // overrides to apply, verbatim; empty: it fits, or nothing known does
  std::string message;  // one paragraph: planned, budget, by how much, the change; empty: it fits
  std::string key;      // of the budget that is too small, as recipes name it; empty: it fits
};

// Bytes of host memory that a job may take: the recipe's host_memory or, next to a card that is
// here, what the machine has left. Nothing where that is not known, or where the device's memory is
// the host's and limits both; then nothing outside the arenas counts.
std::optional<int64_t> host_limit(const formats::Recipe& recipe, const program::Target& target);

// What the arenas of a job may take, next to what the document says lies outside them.
Budget budget_of(const formats::Recipe& recipe, const PlanDocument& plan,
                 const program::Target& target);

// Training and inference alike: compares the device's arena with target.capacity_bytes(device), and
// the host's arenas with what host_limit leaves them next to what lies outside. What is held while
// data are read is compared with the recipe's host_memory too.
bool fits(const formats::Recipe& recipe, const PlanDocument& plan, const program::Target& target);

// The verdict on a plan that does not fit, with the cheapest of these changes that does.
Verdict misfit(const formats::Recipe& recipe, const PlanDocument& plan,
               const program::Target& target, Changes& changes);

// The verdict on a training job. It searches only when the job does not fit: a few dozen plans of
// few layers, and one or two whole ones. `documents` are those that it was planned with.
Verdict judge_fit(const formats::Recipe& recipe, const models::ModelSource& model,
                  const PlanDocument& plan, const program::Target& target,
                  const JobDocuments& documents = {});

// Refuses, with the same exit code, when host_memory is less than the process may hold while it
// reads the data. Called before it does.
void require_room_to_read(const formats::Recipe& recipe, int64_t reading_bytes);

// Throws UserError with the message of a verdict that does not fit and kDoesNotFitExitCode.
[[noreturn]] void refuse(const formats::Recipe& recipe, const Verdict& verdict);

}  // namespace snug::plan
