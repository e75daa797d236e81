// `snug plan mode=serve`: how many sequences of what length the pools of keys and values hold.
#pragma once

#include <cstdint>
#include <string>

#include "base/words.h"
#include "cli/request.h"

namespace snug::cli {

// What `snug plan` plans.
enum class PlanMode : uint8_t { train, serve };
constexpr auto words_of(PlanMode /*type*/) {
  return base::words<PlanMode>({{PlanMode::train, "train"}, {PlanMode::serve, "serve"}});
}

// Removes the word that sets the mode from the request. Throws UserError for an unknown one.
PlanMode take_plan_mode(Request& request);

// The text of `snug plan --help` about it.
std::string plan_mode_help();

// Prints the plan. Returns 0; throws UserError with exit code 3 where not even one sequence fits.
int plan_serving(const Request& request);

}  // namespace snug::cli
