// The letter of multiple choice that an answer decides for. Pure functions; they require valid
// UTF-8.
#pragma once

#include <string_view>

namespace snug::scores {

// 'A' to 'E', or '\0' where there is none. The first rule that finds a letter decides:
// 1. the last "answer is X", "answer: X" or \boxed{X}, with brackets or asterisks around X;
// 2. a letter that the text begins with, if a bracket, a stop, a colon, a comma or the line's end
//    follows;
// 3. the last letter in brackets;
// 4. the last letter that stands alone, other than the article in "A dog".
char answer_choice(std::string_view text);

// 1 where both decide for the same letter, else 0.
double choice_score(std::string_view answer, std::string_view reference);

}  // namespace snug::scores
