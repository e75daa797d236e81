// The number that an answer ends in, for problems whose answer is one. Pure functions; they require
// valid UTF-8.
#pragma once

#include <optional>
#include <string_view>

namespace snug::scores {

// The number of the last line "#### 42" (GSM8K), or else the last one within the last \boxed{...},
// or else the last of the text; nothing where there is none. A number may have a sign, commas
// between thousands, decimals, an exponent, a denominator (3/4, \frac{3}{4}) and units around it: $
// and % are not looked at, so that 50% is 50. Denominators of 0 make no number.
std::optional<double> answer_number(std::string_view text);

// 1 where both have the same number, else 0. As doubles: whole numbers to 2^53 exactly, and 1/5 is
// 0.2.
double number_score(std::string_view answer, std::string_view reference);

}  // namespace snug::scores
