// Intervals of saving, evaluation and logging in the form of other tools: by a strategy (none,
// steps, epoch) or as a number per epoch. They are converted to steps or to a share of all steps:
// with 4 epochs, save_strategy: epoch becomes save_steps: 0.25.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/mistakes.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::formats {

// The written number of epochs; nothing if it cannot be parsed.
std::optional<double> epochs_in(const std::vector<Written>& all);

struct Intervals {
  double epochs = 0;  // of the run, if nothing limits its steps
  base::Mistakes& mistakes;
  std::vector<std::string>& notes;
};

// Removes the strategies and the numbers per epoch from the written keys, and adds or removes the
// keys that they stand for.
std::vector<Written> with_steps(std::vector<Written> all, const Intervals& intervals);

}  // namespace snug::formats
