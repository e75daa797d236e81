// What the planner chose where a recipe leaves it open, by memory and rates of one machine. As text
// it goes from the first of several ranks to the others, which plan the same job by it: by rates
// of their own they might choose otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "passes/gradient/recompute.h"
#include "plan/job/job.h"

namespace snug::plan {

struct Chosen {
  passes::RecomputeModes recompute = passes::RecomputeMode::none;
  bool activation_offloading = false;
  int64_t window_bytes = 0;  // of the device, for copies of what streams
  bool update_on_host = false;
  int64_t nothing_again_bytes = 0;  // RecomputeChoice::nothing_again_bytes
};

Chosen chosen_of(const TrainingSpec& spec, int64_t nothing_again_bytes);

// The spec with these choices.
TrainingSpec with_chosen(TrainingSpec spec, const Chosen& chosen);

// One line, and back. Throws UserError for a text that chosen_text does not make.
std::string chosen_text(const Chosen& chosen);
Chosen chosen_from_text(std::string_view text);

}  // namespace snug::plan
