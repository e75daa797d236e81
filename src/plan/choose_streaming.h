// How tensors stream from host memory, as far as a recipe leaves it open: where weights are
// updated, and how much of the device is for copies.
#pragma once

#include "formats/recipe.h"
#include "plan/job.h"
#include "plan/rates.h"
#include "program/target.h"

namespace snug::plan {

struct StreamingChoice {
  bool chooses_window = false;   // else the spec's is taken
  bool chooses_updates = false;  // on the device, or on the host
  bool is_open() const { return chooses_window || chooses_updates; }
};

// What the recipe leaves open. On a processor, whose memory is the host's, nothing is.
StreamingChoice streaming_choice(const formats::Recipe& recipe, const TrainingSpec& spec,
                                 const program::Target& target);

// The spec's options with what is open chosen: of the jobs whose arena fits the device (that of the
// host is as large in all of them), the one with the shortest step, and of those within 1 % of it
// the one with the least memory for copies. Plans a handful of jobs.
passes::StreamOptions choose_streaming(const TrainingSpec& spec, const StreamingChoice& choice,
                                       const program::Target& target, const Rates& rates,
                                       const program::ExpectedBounds& expected);

}  // namespace snug::plan
