#include "text/tokenizer/steps/precompiled.h"

#include <utf8proc.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/model/growth.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

class Precompiled : public Normalizer {
 public:
  Precompiled(std::vector<uint32_t> trie, std::string replacements)
      : trie_(std::move(trie)), replacements_(std::move(replacements)) {}

  // As in the library, a short grapheme cluster is looked up as a whole, and a longer one character
  // by character.
  void apply(std::string& text, size_t most) const override {
    constexpr size_t kShort = 6;
    std::string result;
    result.reserve(text.size());
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = grapheme_end(text, begin);
      const auto grapheme = std::string_view(text).substr(begin, end - begin);
      const auto whole = grapheme.size() < kShort ? find(grapheme) : std::nullopt;
      if (whole) {
        result += *whole;
      } else {
        append_characters(grapheme, result);
      }
      require_bounded(result.size(), most);
      begin = end;
    }
    text = std::move(result);
  }

 protected:
  // Like the library, counts characters that are removed at the beginning as if they were still
  // there.
  size_t origin_after(std::string_view before, std::string_view after, size_t origin,
                      size_t most) const override {
    const size_t end = Normalizer::origin_after(before, after, origin, most);
    if (end > 0 || origin == 0 || after.empty()) return end;
    return code_point_at(after, 0).size;
  }

 private:
  static size_t grapheme_end(std::string_view text, size_t begin) {
    CodePoint point = code_point_at(text, begin);
    size_t end = begin + point.size;
    utf8proc_int32_t state = 0;
    while (end < text.size()) {
      const CodePoint next = code_point_at(text, end);
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(point.value),
                                           static_cast<utf8proc_int32_t>(next.value), &state))
        break;
      point = next;
      end += next.size;
    }
    return end;
  }

  void append_characters(std::string_view text, std::string& result) const {
    for (size_t i = 0; i < text.size();) {
      const auto character = text.substr(i, sequence_length(static_cast<unsigned char>(text[i])));
      result += find(character).value_or(character);
      i += character.size();
    }
  }

  // The replacement of the shortest prefix of `key` that the trie contains.
  std::optional<std::string_view> find(std::string_view key) const {
    if (trie_.empty()) return std::nullopt;
    uint32_t node = offset_of(trie_[0]);
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= trie_.size()) return std::nullopt;
      const uint32_t unit = trie_[node];
      constexpr uint32_t kLabel = (uint32_t{1} << 31) | 0xFFU;
      if ((unit & kLabel) != byte) return std::nullopt;
      node ^= offset_of(unit);
      const bool has_leaf = ((unit >> 8) & 1U) != 0;
      if (has_leaf && node < trie_.size()) return replacement(trie_[node] & ~(uint32_t{1} << 31));
    }
    return std::nullopt;
  }

  static uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

  std::optional<std::string_view> replacement(size_t begin) const {
    if (begin > replacements_.size()) return std::nullopt;
    const auto rest = std::string_view(replacements_).substr(begin);
    return rest.substr(0, rest.find('\0'));
  }

  std::vector<uint32_t> trie_;
  std::string replacements_;
};

}  // namespace

std::unique_ptr<Normalizer> read_precompiled(const JsonNode& node) {
  const auto bytes = from_base64(node.string("precompiled_charsmap"));
  if (!bytes) node.fail("'precompiled_charsmap' is not valid base64");
  if (bytes->size() < 4) node.fail("'precompiled_charsmap' is cut short");
  const size_t units = little_endian(*bytes, 0) / 4;
  if (units > (bytes->size() - 4) / 4) node.fail("'precompiled_charsmap' is cut short");
  std::vector<uint32_t> trie(units);
  for (size_t i = 0; i < units; ++i) trie[i] = little_endian(*bytes, 4 + 4 * i);
  std::string replacements = bytes->substr(4 + 4 * units);
  if (find_invalid_utf8(replacements) != std::string::npos)
    node.fail("the replacements of 'precompiled_charsmap' are not valid UTF-8");
  return std::make_unique<Precompiled>(std::move(trie), std::move(replacements));
}

}  // namespace snug::text
