// The normalizer of a tokenizer.json, which rewrites a text before it is divided into words.
// Immutable after reading; apply may be called from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "text/record/json_node.h"

namespace snug::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `text` is valid UTF-8 before and after. Throws UserError if it becomes more than `most` bytes
  // (text/tokenizer/model/growth.h).
  virtual void apply(std::string& text, size_t most) const = 0;

  // Applies the normalizer to a text whose first `origin` bytes (whole characters) come from the
  // first character of the original text. Afterwards `origin` is the number of such bytes in the
  // result.
  virtual void apply_from(std::string& text, size_t most, size_t& origin) const;

  // Whether a text may be normalized in pieces, the first with apply and the others with
  // apply_rest. Pieces are cut before a character that stands alone (stands_alone in text_cut.h)
  // and after a character that is not white space.
  virtual bool takes_pieces() const { return true; }
  virtual void apply_rest(std::string& text, size_t most) const { apply(text, most); }
  // Whether it inserts characters that the text did not have.
  virtual bool is_replacement() const { return false; }

 protected:
  // The new `origin` when `before` becomes `after`. By default it is the number of bytes that the
  // first `origin` bytes become on their own, extended to the end of a character with which they
  // merge.
  virtual size_t origin_after(std::string_view before, std::string_view after, size_t origin,
                              size_t most) const;
};

// Supports Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace,
// ByteLevel, Nmt, BertNormalizer, Precompiled. Throws UserError that names any other.
std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node);

}  // namespace snug::text
