// How often a run saves, evaluates and logs, where a recipe says it as other tools do: by a
// strategy (none, steps, epoch) or as a number for each epoch. It becomes steps, or that share of
// all steps: save_strategy: epoch of 4 epochs is save_steps: 0.25.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/mistakes.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::formats {

// The number of epochs that is written; nothing where none can be read.
std::optional<double> epochs_in(const std::vector<Written>& all);

struct Intervals {
  double epochs = 0;  // of the run, if nothing limits its steps
  base::Mistakes& mistakes;
  std::vector<std::string>& notes;
};

// Takes the strategies and the numbers for each epoch out of the written keys, and adds or takes
// out the keys that they mean.
std::vector<Written> with_steps(std::vector<Written> all, const Intervals& intervals);

}  // namespace snug::formats
