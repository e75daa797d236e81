// Decides whether a planned job fits its budgets and, if not, finds the cheapest change that makes
// it fit.
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
  // Overrides to apply, verbatim; empty: it fits, or no known change makes it fit.
  std::string change;
  // One paragraph: planned, budget, difference, the change; empty: it fits.
  std::string message;
  // The recipe's key for the budget that is too small; empty: it fits.
  std::string key;
};

// The bytes of host memory that a job may take: the recipe's host_memory or, if the job runs on
// this machine's GPU, what the machine has left. Nothing where that is unknown, or where device and
// host memory are the same and one limit covers both; memory outside the arenas then does not
// count.
std::optional<int64_t> host_limit(const formats::Recipe& recipe, const program::Target& target);

// The bytes that the arenas of a job may take, after the memory outside them that the document
// states.
Budget budget_of(const formats::Recipe& recipe, const PlanDocument& plan,
                 const program::Target& target);

// For training and inference: compares the device's arena with target.capacity_bytes(device), and
// the host's arenas with host_limit minus the memory outside the arenas. The memory that reading
// the data takes is compared with the recipe's host_memory, too.
bool fits(const formats::Recipe& recipe, const PlanDocument& plan, const program::Target& target);

// The verdict on a plan that does not fit, with the cheapest of these changes that makes it fit.
Verdict misfit(const formats::Recipe& recipe, const PlanDocument& plan,
               const program::Target& target, Changes& changes);

// The verdict on a training job. It searches only when the job does not fit: a few dozen plans of
// few layers, and one or two whole ones. `documents` are those that it was planned with.
Verdict judge_fit(const formats::Recipe& recipe, const models::ModelSource& model,
                  const PlanDocument& plan, const program::Target& target,
                  const JobDocuments& documents = {});

// Throws UserError, with the same exit code, when host_memory is less than the process may hold
// while it reads the data. To be called before reading.
void require_room_to_read(const formats::Recipe& recipe, int64_t reading_bytes);

// Throws UserError with the verdict's message and kDoesNotFitExitCode.
[[noreturn]] void refuse(const formats::Recipe& recipe, const Verdict& verdict);

}  // namespace snug::plan
