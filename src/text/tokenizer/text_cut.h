// Finds places where a text can be cut such that both parts, tokenized separately, give the tokens
// of the whole. Considers added tokens and the normalizer; the pre-tokenizer handles open words
// (pre_tokenizer.h). Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/tokenizer/tokenizer_parts.h"

namespace snug::text {

// Characters that no Unicode normal form joins to the text before them, or moves: those below
// U+0300, kana, CJK ideographs and Hangul syllables.
bool stands_alone(char32_t value);

// The last place at which `text`, which continues, can be cut; 0 if there is none in its second
// half. No added token includes or touches the place, in the text or in its normalized form, and it
// is not preceded by white space, which a token could include.
size_t last_cut(const Tokenizer::Parts& parts, std::string_view text);

}  // namespace snug::text
