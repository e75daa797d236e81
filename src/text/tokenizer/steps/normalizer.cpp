#include "text/tokenizer/steps/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/tokenizer/model/growth.h"
#include "text/tokenizer/steps/byte_alphabet.h"
#include "text/tokenizer/steps/character_normalizers.h"
#include "text/tokenizer/steps/pattern.h"
#include "text/tokenizer/steps/precompiled.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void apply(std::string& text, size_t most) const override {
    for (const auto& step : steps_) {
      step->apply(text, most);
      require_bounded(text.size(), most);
    }
  }
  void apply_from(std::string& text, size_t most, size_t& origin) const override {
    for (const auto& step : steps_) {
      step->apply_from(text, most, origin);
      require_bounded(text.size(), most);
    }
  }
  // A Replace inserts text that was not considered when the text was cut, so no step may follow it.
  bool takes_pieces() const override {
    for (size_t i = 0; i < steps_.size(); ++i)
      if (!steps_[i]->takes_pieces() || (i + 1 < steps_.size() && steps_[i]->is_replacement()))
        return false;
    return true;
  }
  bool is_replacement() const override {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->is_replacement(); });
  }
  void apply_rest(std::string& text, size_t most) const override {
    for (const auto& step : steps_) {
      step->apply_rest(text, most);
      require_bounded(text.size(), most);
    }
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(int options) : options_(options) {}
  void apply(std::string& text, size_t /*most*/) const override {
    apply_unicode_form(text, options_);
  }

 private:
  int options_;
};

class Lowercase : public Normalizer {
 public:
  void apply(std::string& text, size_t /*most*/) const override { apply_lowercase(text); }
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(std::string& text, size_t /*most*/) const override {
    size_t first = 0;
    size_t last = 0;
    bool seen = false;
    for (size_t i = 0; i < text.size();) {
      const CodePoint point = code_point_at(text, i);
      if (!is_white_space(point.value)) {
        if (!seen) first = i;
        seen = true;
        last = i + point.size;
      }
      i += point.size;
    }
    if (right_) text.resize(seen ? last : 0);
    if (left_) text.erase(0, seen ? first : text.size());
  }
  bool takes_pieces() const override { return false; }

 protected:
  size_t origin_after(std::string_view before, std::string_view after, size_t origin,
                      size_t /*most*/) const override {
    const size_t removed = left_ ? before.find(after) : 0;
    return std::min(after.size(), origin - std::min(origin, removed));
  }

 private:
  bool left_;
  bool right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(std::string& text, size_t most) const override {
    if (text.empty()) return;
    require_bounded(prefix_.size() + text.size(), most);
    text.insert(0, prefix_);
  }
  void apply_rest(std::string& /*text*/, size_t /*most*/) const override {}

 protected:
  size_t origin_after(std::string_view before, std::string_view after, size_t origin,
                      size_t /*most*/) const override {
    return origin == 0 ? 0 : origin + after.size() - before.size();
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(Regex pattern, std::string content, bool of_character)
      : pattern_(std::move(pattern)), content_(std::move(content)), of_character_(of_character) {}
  void apply(std::string& text, size_t most) const override {
    replace_all(text, pattern_, content_, most);
  }
  // A single character is never cut, so its replacement can be applied to pieces.
  bool takes_pieces() const override { return of_character_; }
  bool is_replacement() const override { return true; }

 protected:
  // A replacement counts as coming from the same place as the last byte that it replaces.
  size_t origin_after(std::string_view before, std::string_view /*after*/, size_t origin,
                      size_t /*most*/) const override {
    std::vector<Range> matches;
    pattern_.find_all(before, matches);
    size_t done = 0;
    size_t result = 0;
    for (const Range& match : matches) {
      if (match.begin > origin) break;
      result += match.begin - done;
      done = match.end;
      if (match.end > origin) return result;
      result += content_.size();
    }
    return result + origin - done;
  }

 private:
  Regex pattern_;
  std::string content_;
  bool of_character_;  // the pattern is a single character
};

class ByteLevel : public Normalizer {
 public:
  void apply(std::string& text, size_t /*most*/) const override {
    std::string mapped;
    append_byte_characters(mapped, text);
    text = std::move(mapped);
  }
};

std::unique_ptr<Normalizer> read_sequence(const JsonNode& node) {
  node.only_keys({"type", "normalizers"});
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const JsonNode& step : node.array("normalizers")) steps.push_back(read_normalizer(step));
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace

void Normalizer::apply_from(std::string& text, size_t most, size_t& origin) const {
  const std::string before = text;
  apply(text, most);
  origin = origin_after(before, text, origin, most);
}

size_t Normalizer::origin_after(std::string_view before, std::string_view after, size_t origin,
                                size_t most) const {
  std::string first(before.substr(0, origin));
  apply(first, most);
  size_t end = std::min(first.size(), after.size());
  while (end > 0 && end < after.size() && (static_cast<unsigned char>(after[end]) & 0xC0U) == 0x80U)
    ++end;
  return end;
}

std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node) {
  const std::string type = node.string("type");
  if (type == "Sequence") return read_sequence(node);
  if (type == "NFC") return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  if (type == "NFD") return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  if (type == "NFKC")
    return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  if (type == "NFKD")
    return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Nmt") return make_nmt();
  if (type == "BertNormalizer") return read_bert_normalizer(node);
  if (type == "Precompiled") {
    node.only_keys({"type", "precompiled_charsmap"});
    return read_precompiled(node);
  }
  if (type == "Strip") {
    node.only_keys({"type", "strip_left", "strip_right"});
    return std::make_unique<Strip>(node.boolean("strip_left"), node.boolean("strip_right"));
  }
  if (type == "Prepend") {
    node.only_keys({"type", "prepend"});
    return std::make_unique<Prepend>(node.string("prepend"));
  }
  if (type == "Replace") {
    node.only_keys({"type", "pattern", "content"});
    const JsonNode pattern = node.object("pattern");
    const std::string literal = pattern.string_or("String", "");
    const bool of_character = !literal.empty() && code_point_at(literal, 0).size == literal.size();
    return std::make_unique<Replace>(read_pattern(node), node.string("content"), of_character);
  }
  node.fail("the normalizer '" + type +
            "' is not supported; Snug reads Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, "
            "StripAccents, Prepend, Replace, ByteLevel, Nmt, BertNormalizer and Precompiled");
}

}  // namespace snug::text
