// Scores by a regular expression in Python's syntax (base/python_pattern.h).
#pragma once

#include <string>

#include "scores/score.h"

namespace snug::scores {

// 1 where what the expression finds first in the answer, its first group or all of it where it has
// none, is the reference, or what it finds in the reference where it finds something there.
// Throws std::invalid_argument for an expression that is wrong or not supported.
Judge found_text_judge(const std::string& pattern);

// 1 where the whole answer matches, else 0. Throws likewise.
Judge whole_format_judge(const std::string& pattern);

}  // namespace snug::scores
