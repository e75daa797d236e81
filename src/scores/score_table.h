// All scores by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "scores/score.h"

namespace snug::scores {

enum class ScoreArgument : uint8_t { none, optional, required };

struct ScoreRow {
  std::string_view name;
  ScoreArgument argument = ScoreArgument::none;
  std::string_view argument_name{};  // "PATTERN"
  bool needs_reference = true;
  // Throws std::invalid_argument, or UserError, that says what is wrong with the argument.
  Judge (*judge)(const std::string& argument);
};

std::span<const ScoreRow> score_table();

// nullptr where there is none of this name.
const ScoreRow* find_score(std::string_view name);

}  // namespace snug::scores
