// A text of any length to ids, in pieces: the ids are those that Tokenizer::encode gives for the
// whole without special tokens around it, and what is held does not grow with the text. Pieces are
// cut where that is certain (text_cut.h, tokenizer_parts.h); a tokenizer or a text that offers no
// such place within kMaxHeld bytes is refused. One text, one thread. The tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class TextEncoder {
 public:
  static constexpr size_t kMaxHeld = size_t{512} << 10;

  // Text is collected until there are `piece_bytes`, so that the search for a place to cut is
  // cheap.
  explicit TextEncoder(const Tokenizer& tokenizer, size_t piece_bytes = size_t{64} << 10);

  // For text without added tokens, as in Tokenizer::encode_ordinary. Such text is never refused:
  // finishing a copy of the object gives the ids of the text so far.
  static TextEncoder of_ordinary(const Tokenizer& tokenizer, bool at_text_start,
                                 size_t piece_bytes);

  // Adds the next piece (valid UTF-8, whole characters), and appends the ids that are certain.
  // Throws UserError.
  void add(std::string_view piece, std::vector<int32_t>& ids);
  // Ends the text, and appends the remaining ids.
  void finish(std::vector<int32_t>& ids);
  // The number of bytes whose ids are not certain yet.
  size_t held() const { return pending_.size() + carry_.size(); }

 private:
  void encode(std::string_view text, bool is_last, std::vector<int32_t>& ids);
  void add_ordinary(std::string_view text, std::vector<int32_t>& ids);
  void encode_carry(bool is_open, std::vector<int32_t>& ids);
  void end_ordinary(std::vector<int32_t>& ids);

  const Tokenizer::Parts& parts_;
  size_t piece_bytes_;
  std::string pending_;        // text that has not been cut
  std::string carry_;          // normalized text that has not been encoded
  bool at_text_start_ = true;  // no text has been added
  // Leading bytes of carry_ that come from the text's first character.
  size_t origin_ = 0;
  bool is_ordinary_ = false;  // the whole text is ordinary text
  // The last added piece was ordinary text, which may continue.
  bool within_ordinary_ = false;
};

}  // namespace snug::text
