// Encodes normalized text in windows, so that only the words of one window are in memory, however
// long the text is. A window ends where the pre-tokenizer certainly divides (pre_tokenizer.h), so
// the ids are the same as for the whole text. One object per text and thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer_parts.h"

namespace snug::text {

// Appends the ids of `text`, which contains no added token, and returns how much of it was encoded:
// all of it or, with `is_open` (more text follows), the part that does not depend on what follows.
// Throws UserError for a word that is too long.
struct WordPlace {
  size_t origin = 0;  // leading bytes that come from the original text's first character
  bool is_open = false;
  // A word takes 24 bytes, and up to 40 more while text is divided; so a window of one-byte words
  // takes 1 MiB per thread. Usual text has words of five bytes.
  size_t window_bytes = size_t{16} << 10;
};
size_t encode_words(const Tokenizer::Parts& parts, std::string_view text, WordPlace place,
                    std::vector<int32_t>& ids);

}  // namespace snug::text
