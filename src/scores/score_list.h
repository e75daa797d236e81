// Lists of scores as recipes write them: "exact,rougeL,regex:(\d+)", and with weights
// "number:2,format:<think>.*</think>.*:0.5".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/recipe.h"
#include "scores/score.h"

namespace snug::scores {

struct WeighedScore {
  Score score;
  double weight = 1;
};

// The scores of a list, each item of which may be several that commas separate. A comma belongs to
// the argument before it where no score's name follows, as in regex:(\d{1,3}). Throws UserError, at
// the place of `key`, for names that no score has, for an argument that is missing, not wanted or
// wrong, and for a score that is there twice.
std::vector<Score> scores_of_list(const formats::Recipe& recipe, std::string_view key,
                                  const std::vector<std::string>& list);

// The same with a weight after the last colon, where a number stands there; without, it is 1.
std::vector<WeighedScore> weighed_scores_of_list(const formats::Recipe& recipe,
                                                 std::string_view key,
                                                 const std::vector<std::string>& list);

}  // namespace snug::scores
