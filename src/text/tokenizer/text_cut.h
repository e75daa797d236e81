// Where a text can be cut so that both halves, tokenized apart, give the tokens of the whole: as
// far as added tokens and the normalizer go. The pre-tokenizer takes open words (pre_tokenizer.h).
// Pure functions of what they are given; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/tokenizer/tokenizer_parts.h"

namespace snug::text {

// Characters that no Unicode normal form joins to what stands before them, nor moves: those below
// U+0300, kana, CJK ideographs and Hangul syllables.
bool stands_alone(char32_t value);

// The last place of `text`, which more text follows, to cut it at; 0 where there is none in its
// second half. No added token stands at it, in the text or in what the normalizer makes of it, and
// no white space before it, which a token could take.
size_t last_cut(const Tokenizer::Parts& parts, std::string_view text);

}  // namespace snug::text
