// What the tokenizers library does not know of Unicode: its tables of normal forms are those of
// Unicode 9, its tables of categories those of Unicode 8, while those of utf8proc are newer. Found
// by comparing every character of Unicode 15 (scripts/oracles/check_tokenizers). Pure functions,
// any thread.
#pragma once

namespace snug::text {

// A character that is no mark to the library, and that its normal forms leave alone.
bool is_new_to_forms(char32_t value);
// Whether a character is new to the categories Mn, P and Cf.
bool is_new_nonspacing(char32_t value);
bool is_new_punctuation(char32_t value);
bool is_new_format(char32_t value);

}  // namespace snug::text
