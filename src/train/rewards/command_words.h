// The words of a command line, as a shell splits them, with nothing else that a shell does: no
// variables, no patterns, no pipes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::train {

// White space separates words; within '...' every sign stands for itself, within "..." a backslash
// takes the sign behind it as it is, as it does outside of quotes. Throws std::invalid_argument for
// a quote that is not closed, a backslash at the end, and where there is no word.
std::vector<std::string> command_words(std::string_view command);

}  // namespace snug::train
