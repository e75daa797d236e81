// The normalizer of a tokenizer.json: rewrites a text before it is cut into words. Immutable after
// reading; apply may be called from any thread.
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
  // `text` is valid UTF-8 before and after. Throws UserError where more than `most` bytes come of
  // it (text/tokenizer/model/growth.h).
  virtual void apply(std::string& text, size_t most) const = 0;

  // Applies it to a text whose first `origin` bytes, whole characters, come from its first
  // character before any normalization; so do the first `origin` bytes of the result afterwards.
  virtual void apply_from(std::string& text, size_t most, size_t& origin) const;

  // A text in pieces, cut before a character that stands for itself (stands_alone of
  // text_cut.h) and after one that is no white space: whether its pieces may be normalized apart,
  // the first with apply, those that follow with apply_rest.
  virtual bool takes_pieces() const { return true; }
  virtual void apply_rest(std::string& text, size_t most) const { apply(text, most); }
  // Whether it puts characters in that the text did not have.
  virtual bool is_replacement() const { return false; }

 protected:
  // What becomes of `origin` where `before` becomes `after`. Unless a step knows better: as many
  // bytes as the first `origin` bytes alone become, and the rest of a character they merge into.
  virtual size_t origin_after(std::string_view before, std::string_view after, size_t origin,
                              size_t most) const;
};

// Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, ByteLevel, Nmt,
// BertNormalizer, Precompiled. Throws UserError that names any other.
std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node);

}  // namespace snug::text
