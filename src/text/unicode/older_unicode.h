// Unicode characters that the tokenizers library does not know: its tables of normal forms are
// those of Unicode 9 and its tables of categories those of Unicode 8, while utf8proc's are newer.
// Found by comparing every character of Unicode 15 (scripts/oracles/check_tokenizers). Pure
// functions, any thread.
#pragma once

namespace snug::text {

// Whether the library does not treat the character as a mark, and its normal forms leave it
// unchanged.
bool is_new_to_forms(char32_t value);
// Whether a character is new in the categories Mn, P and Cf.
bool is_new_nonspacing(char32_t value);
bool is_new_punctuation(char32_t value);
bool is_new_format(char32_t value);

}  // namespace snug::text
