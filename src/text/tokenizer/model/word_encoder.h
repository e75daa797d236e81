// Normalized text to ids, in windows: however long the text is, the words of one window are held.
// A window ends where the pre-tokenizer certainly divides (pre_tokenizer.h), so that the ids are
// those of the whole. One text, one thread; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer_parts.h"

namespace snug::text {

// Appends the ids of `text`, which holds no added token, and returns how much of it was encoded:
// all of it, or with `is_open`, where more text follows, as much as does not depend on what
// follows. Throws UserError for a word that is too long.
struct WordPlace {
  size_t origin = 0;  // bytes at its beginning that come from the text's first character
  bool is_open = false;
  // A word takes 24 bytes, and up to 40 more while text is divided; a window of nothing but words
  // of one byte so takes 1 MiB in a thread. Usual text has words of five bytes.
  size_t window_bytes = size_t{16} << 10;
};
size_t encode_words(const Tokenizer::Parts& parts, std::string_view text, WordPlace place,
                    std::vector<int32_t>& ids);

}  // namespace snug::text
