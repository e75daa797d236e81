// Lists of scores as recipes write them: "exact,rougeL,regex:(\d+)", and with weights
// "number:2,format:<think>.*</think>.*:0.5".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/recipe.h"
#include "scores/score.h"

namespace snug::scores {

// The scores of a list, each item of which may be several that commas separate. A comma belongs to
// the argument before it where no score's name follows, as in regex:(\d{1,3}). Throws UserError, at
// the place of `key`, for names that no score has, for an argument that is missing, not wanted or
// wrong, and for a score that is there twice.
std::vector<Score> scores_of_list(const formats::Recipe& recipe, std::string_view key,
                                  const std::vector<std::string>& list);

// A name as it was written, with its argument, and its weight.
struct WeighedName {
  std::string written;
  double weight = 1;
};

// The names of such a list, with a weight after the last colon, where a number stands there that is
// not all of an argument that must be; without, it is 1. `others`: names of what is no score and
// may stand next to scores; it has an argument, too. Throws UserError for a name that is there
// twice; whether a name is known and its argument right, score_of_name says.
std::vector<WeighedName> weighed_names_of_list(const formats::Recipe& recipe, std::string_view key,
                                               const std::vector<std::string>& list,
                                               std::span<const std::string_view> others = {});

// One score of the list of `key`. Throws as scores_of_list does; `others` are told of as known.
Score score_of_name(const formats::Recipe& recipe, std::string_view key, const std::string& written,
                    std::span<const std::string_view> others = {});

// The name in front of a colon and its argument, and what is behind it.
std::string_view name_in(std::string_view written);
std::string_view argument_in(std::string_view written);

}  // namespace snug::scores
