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

  // Text waits until `piece_bytes` are there, so that looking for a place to cut it costs nothing.
  explicit TextEncoder(const Tokenizer& tokenizer, size_t piece_bytes = size_t{64} << 10);

  // Of text that holds no added token, as Tokenizer::encode_ordinary takes it. It is never refused:
  // a copy that is finished tells the ids of the text so far.
  static TextEncoder of_ordinary(const Tokenizer& tokenizer, bool at_text_start,
                                 size_t piece_bytes);

  // The next piece, whole characters of valid UTF-8; appends the ids that are certain. Throws
  // UserError.
  void add(std::string_view piece, std::vector<int32_t>& ids);
  // The text is complete: appends the ids that are left.
  void finish(std::vector<int32_t>& ids);
  // Bytes whose ids are not certain yet.
  size_t held() const { return pending_.size() + carry_.size(); }

 private:
  void encode(std::string_view text, bool is_last, std::vector<int32_t>& ids);
  void add_ordinary(std::string_view text, std::vector<int32_t>& ids);
  void encode_carry(bool is_open, std::vector<int32_t>& ids);
  void end_ordinary(std::vector<int32_t>& ids);

  const Tokenizer::Parts& parts_;
  size_t piece_bytes_;
  std::string pending_;           // text that is not cut yet
  std::string carry_;             // normalized text that is not encoded yet
  bool at_text_start_ = true;     // nothing was given yet
  size_t origin_ = 0;             // bytes of carry_ that come from the text's first character
  bool is_ordinary_ = false;      // all of the text
  bool within_ordinary_ = false;  // what was given last is ordinary text, which may go on
};

}  // namespace snug::text
