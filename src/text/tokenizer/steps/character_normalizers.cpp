#include "text/tokenizer/steps/character_normalizers.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/unicode/older_unicode.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// The mapping's result for a character that is to be removed.
constexpr char32_t kRemoved = 0x110000;

// Replaces each character by map(character), or drops it if that is kRemoved.
template <typename Map>
void map_characters(std::string& text, const Map& map) {
  std::string mapped;
  mapped.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const char32_t value = map(point.value);
    if (value != kRemoved) append_code_point(mapped, value);
    i += point.size;
  }
  text = std::move(mapped);
}

utf8proc_category_t category_of(char32_t value) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool is_within(char32_t value, char32_t first, char32_t last) {
  return value >= first && value <= last;
}

void append_form(std::string_view text, int options, std::string& result) {
  if (text.empty()) return;
  utf8proc_uint8_t* mapped = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                 static_cast<utf8proc_option_t>(options));
  SNUG_CHECK(size >= 0, "utf8proc: {}", utf8proc_errmsg(size));
  result.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
}

class StripAccents : public Normalizer {
 public:
  void apply(std::string& text, size_t /*most*/) const override {
    map_characters(text, [](char32_t c) {
      const auto kind = category_of(c);
      const bool is_mark = kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
      // The last two were marks in Unicode 9.
      const bool was_mark = (is_mark && !is_new_to_forms(c)) || c == 0x1CF2 || c == 0x1CF3;
      return was_mark ? kRemoved : c;
    });
  }
};

class Nmt : public Normalizer {
 public:
  void apply(std::string& text, size_t /*most*/) const override {
    map_characters(text, [](char32_t c) {
      if (is_within(c, 0x01, 0x08) || c == 0x0B || is_within(c, 0x0E, 0x1F) || c == 0x7F ||
          c == 0x8F || c == 0x9F)
        return kRemoved;
      const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                            is_within(c, 0x200B, 0x200F) || c == 0x2028 || c == 0x2029 ||
                            c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      return is_space ? U' ' : c;
    });
  }
};

// Ideographs, each of which is a word of its own in Chinese.
bool is_ideograph(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> kBlocks = {{{0x4E00, 0x9FFF},
                                                                     {0x3400, 0x4DBF},
                                                                     {0x20000, 0x2A6DF},
                                                                     {0x2A700, 0x2B73F},
                                                                     {0x2B740, 0x2B81F},
                                                                     {0x2B920, 0x2CEAF},
                                                                     {0xF900, 0xFAFF},
                                                                     {0x2F800, 0x2FA1F}}};
  for (const auto& [first, last] : kBlocks)
    if (is_within(c, first, last)) return true;
  return false;
}

char32_t cleaned(char32_t c) {
  if (c == 0 || c == 0xFFFD) return kRemoved;
  if (c == '\t' || c == '\n' || c == '\r') return U' ';
  const auto kind = category_of(c);
  const bool is_format = kind == UTF8PROC_CATEGORY_CF && !is_new_format(c);
  if (is_format || kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CO) return kRemoved;
  return is_white_space(c) ? U' ' : c;
}

class Bert : public Normalizer {
 public:
  struct Settings {
    bool cleans = true;
    bool spaces_ideographs = true;
    bool strips_accents = true;
    bool lowers = true;
  };
  explicit Bert(Settings settings) : settings_(settings) {}

  void apply(std::string& text, size_t /*most*/) const override {
    if (settings_.cleans) map_characters(text, cleaned);
    if (settings_.spaces_ideographs) space_ideographs(text);
    if (settings_.strips_accents) {
      apply_unicode_form(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
      map_characters(text, [](char32_t c) {
        const bool is_nonspacing = category_of(c) == UTF8PROC_CATEGORY_MN && !is_new_nonspacing(c);
        // U+1734 was a nonspacing mark in Unicode 8.
        return is_nonspacing || c == 0x1734 ? kRemoved : c;
      });
    }
    if (settings_.lowers) apply_lowercase(text);
  }

 private:
  static void space_ideographs(std::string& text) {
    std::string spaced;
    spaced.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
      const CodePoint point = code_point_at(text, i);
      const bool has_spaces = is_ideograph(point.value);
      if (has_spaces) spaced += ' ';
      spaced.append(text, i, point.size);
      if (has_spaces) spaced += ' ';
      i += point.size;
    }
    text = std::move(spaced);
  }

  Settings settings_;
};

}  // namespace

std::unique_ptr<Normalizer> make_strip_accents() { return std::make_unique<StripAccents>(); }
std::unique_ptr<Normalizer> make_nmt() { return std::make_unique<Nmt>(); }

std::unique_ptr<Normalizer> read_bert_normalizer(const JsonNode& node) {
  node.only_keys({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  Bert::Settings settings;
  settings.cleans = node.boolean("clean_text");
  settings.spaces_ideographs = node.boolean("handle_chinese_chars");
  settings.lowers = node.boolean("lowercase");
  settings.strips_accents = node.boolean_or("strip_accents", settings.lowers);
  return std::make_unique<Bert>(settings);
}

// The library does not know newer characters, which therefore separate the text before them from
// the text after them.
void apply_unicode_form(std::string& text, int options) {
  bool is_ascii = true;
  for (const char c : text) is_ascii &= static_cast<unsigned char>(c) < 0x80;
  if (is_ascii) return;
  std::string result;
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    if (is_new_to_forms(point.value)) {
      append_form(std::string_view(text).substr(done, i - done), options, result);
      result.append(text, i, point.size);
      done = i + point.size;
    }
    i += point.size;
  }
  append_form(std::string_view(text).substr(done), options, result);
  text = std::move(result);
}

void apply_lowercase(std::string& text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    i += point.size;
    // Dotted capital I is the only character whose full lower case has two characters.
    if (point.value == 0x130) {
      lower += "i\xCC\x87";
    } else {
      append_code_point(lower, static_cast<char32_t>(
                                   utf8proc_tolower(static_cast<utf8proc_int32_t>(point.value))));
    }
  }
  text = std::move(lower);
}

}  // namespace snug::text
