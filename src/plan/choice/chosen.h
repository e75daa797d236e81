// The planner's choices for what a recipe leaves open, which depend on one machine's memory and
// rates. With several ranks, the first rank sends them as text to the others, so that all plan the
// same job: from their own rates they might choose differently.
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
  // Device memory for copies of tensors that stream.
  int64_t window_bytes = 0;
  bool update_on_host = false;
  bool gathers_once = false;        // RolloutSizes::gathers_once
  int64_t nothing_again_bytes = 0;  // RecomputeChoice::nothing_again_bytes
};

Chosen chosen_of(const TrainingSpec& spec, int64_t nothing_again_bytes);

// The spec with these choices.
TrainingSpec with_chosen(TrainingSpec spec, const Chosen& chosen);

// One line of text, and the choices parsed from it. Throws UserError for text that chosen_text does
// not produce.
std::string chosen_text(const Chosen& chosen);
Chosen chosen_from_text(std::string_view text);

}  // namespace snug::plan
