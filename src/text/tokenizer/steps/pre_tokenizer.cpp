#include "text/tokenizer/steps/pre_tokenizer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "text/tokenizer/model/growth.h"
#include "text/tokenizer/steps/byte_alphabet.h"
#include "text/tokenizer/steps/divider.h"
#include "text/tokenizer/steps/pattern.h"
#include "text/tokenizer/steps/split_behavior.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

constexpr const char* kByteLevelPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// \w+|[^\w\s]+ as Rust's regex crate reads it, where \w differs from Oniguruma's.
constexpr const char* kWhitespacePattern = "[\\w\\p{Join_Control}]+|[^\\w\\p{Join_Control}\\s]+";

// Divides words at the matches of `pattern`.
void divide_at(const Regex& pattern, SplitRule rule, Words& words) {
  if (words.is_open && pattern.looks_back()) words.close();
  divide(words, rule, [&](std::string_view text, bool is_open, std::vector<Range>& matches) {
    if (is_open) return pattern.find_certain(text, matches);
    pattern.find_all(text, matches);
    return text.size();
  });
}

// Makes every character for which `is_delimiter` holds a match of its own.
template <typename Predicate>
void find_characters(std::string_view text, const Predicate& is_delimiter,
                     std::vector<Range>& matches) {
  matches.clear();
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    if (is_delimiter(point.value)) matches.push_back({i, i + point.size});
    i += point.size;
  }
}

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  void apply(Words& words) const override {
    for (const auto& step : steps_) {
      step->apply(words);
      require_bounded(words.buffer.size(), words.most);
    }
  }

  bool asks_origin() const override {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->asks_origin(); });
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

class Split : public PreTokenizer {
 public:
  Split(Regex pattern, SplitRule rule) : pattern_(std::move(pattern)), rule_(rule) {}
  void apply(Words& words) const override { divide_at(pattern_, rule_, words); }

 private:
  Regex pattern_;
  SplitRule rule_;
};

class CharacterSplit : public PreTokenizer {
 public:
  CharacterSplit(bool (*is_delimiter)(char32_t), SplitRule rule)
      : is_delimiter_(is_delimiter), rule_(rule) {}
  void apply(Words& words) const override {
    divide(words, rule_, [&](std::string_view text, bool, std::vector<Range>& matches) {
      find_characters(text, is_delimiter_, matches);
      return text.size();
    });
  }

 private:
  bool (*is_delimiter_)(char32_t);
  SplitRule rule_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex), pattern_(kByteLevelPattern) {}

  void apply(Words& words) const override {
    if (add_prefix_space_) prefix_words(words);
    if (use_regex_) divide_at(pattern_, {}, words);
    words.close();
    std::string mapped;
    mapped.reserve(words.buffer.size() + words.buffer.size() / 4);
    for (Words::Word& word : words.list) {
      const size_t begin = mapped.size();
      const auto text = std::string_view(words.buffer).substr(word.begin, word.end - word.begin);
      append_byte_characters(mapped, text.substr(0, word.origin));
      const size_t origin = mapped.size() - begin;
      append_byte_characters(mapped, text.substr(word.origin));
      word.origin = origin;
      word.begin = begin;
      word.end = mapped.size();
    }
    words.buffer = std::move(mapped);
  }

 private:
  // What is left of an open word would get the prefix too, so no word is left open.
  static void prefix_words(Words& words) {
    words.close();
    std::string spaced;
    for (Words::Word& word : words.list) {
      const size_t begin = spaced.size();
      if (words.buffer[word.begin] != ' ') {
        spaced += ' ';
        if (word.origin > 0) ++word.origin;
      }
      spaced.append(words.buffer, word.begin, word.end - word.begin);
      word.begin = begin;
      word.end = spaced.size();
    }
    words.buffer = std::move(spaced);
  }

  bool add_prefix_space_;
  bool use_regex_;
  Regex pattern_;
};

class CharDelimiterSplit : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(std::string_view delimiter)
      : delimiter_(code_point_at(delimiter, 0).value) {}
  void apply(Words& words) const override {
    divide(words, {SplitBehavior::removed, false},
           [this](std::string_view text, bool, std::vector<Range>& matches) {
             find_characters(
                 text, [this](char32_t c) { return c == delimiter_; }, matches);
             return text.size();
           });
  }

 private:
  char32_t delimiter_;
};

// Divides text into words of a fixed number of characters; the last word has the rest.
class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(size_t length) : length_(length) {}
  void apply(Words& words) const override {
    divide(words, {}, [this](std::string_view text, bool is_open, std::vector<Range>& matches) {
      matches.clear();
      size_t begin = 0;
      size_t count = 0;
      for (size_t i = 0; i < text.size();) {
        i += sequence_length(static_cast<unsigned char>(text[i]));
        if (++count < length_ && (i < text.size() || is_open)) continue;
        matches.push_back({begin, i});
        begin = i;
        count = 0;
      }
      return begin;
    });
  }

 private:
  size_t length_;
};

enum class PrependScheme { always, first, never };

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)),
        scheme_(scheme),
        split_(split),
        pattern_(Regex::literal(replacement_)) {}

  void apply(Words& words) const override {
    if (words.is_open) close_at_mark(words);
    std::string result;
    for (Words::Word& word : words.list) {
      const auto text = std::string_view(words.buffer).substr(word.begin, word.end - word.begin);
      const size_t begin = result.size();
      const bool starts_marked = text.starts_with(' ') || text.starts_with(replacement_);
      const bool wants =
          scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && word.origin > 0);
      if (wants && !starts_marked) result += replacement_;
      append_marked(text.substr(0, word.origin), result);
      const size_t origin = word.origin == 0 ? 0 : result.size() - begin;
      append_marked(text.substr(word.origin), result);
      word.origin = origin;
      word.begin = begin;
      word.end = result.size();
    }
    words.buffer = std::move(result);
    if (split_) divide_at(pattern_, {SplitBehavior::merged_with_next, false}, words);
  }

  bool asks_origin() const override { return scheme_ == PrependScheme::first; }

 private:
  void append_marked(std::string_view text, std::string& result) const {
    for (const char c : text) {
      if (c == ' ') {
        result += replacement_;
      } else {
        result += c;
      }
    }
  }

  bool is_mark_at(std::string_view text, size_t i) const {
    return text[i] == ' ' || text.substr(i).starts_with(replacement_);
  }

  // Ends the open word before the last mark that follows another character. A word begins there or,
  // if words are not split at marks, at least a token.
  void close_at_mark(Words& words) const {
    Words::Word& word = words.list.back();
    const auto text = std::string_view(words.buffer).substr(word.begin, word.end - word.begin);
    // The model's property of marks applies only to SentencePiece's mark.
    const bool splits = split_ || (words.splits_at_marks && replacement_ == "\xE2\x96\x81");
    size_t begin = 0;
    for (size_t i = text.size(); splits && i-- > 1 && begin == 0;)
      if (is_mark_at(text, i) && text[i - 1] != ' ' && !text.substr(0, i).ends_with(replacement_))
        begin = i;
    if (begin == 0) return words.close();
    words.done += begin;
    word.end = word.begin + begin;
    word.origin = std::min(word.origin, begin);
    words.is_open = false;
  }

  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
  Regex pattern_;
};

std::unique_ptr<PreTokenizer> read_metaspace(const JsonNode& node) {
  node.only_keys({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  // Files written before prepend_scheme existed have add_prefix_space instead.
  const bool adds = node.boolean_or("add_prefix_space", true);
  const std::string scheme = node.string_or("prepend_scheme", adds ? "always" : "never");
  PrependScheme parsed = PrependScheme::always;
  if (scheme == "first") {
    parsed = PrependScheme::first;
  } else if (scheme == "never") {
    parsed = PrependScheme::never;
  } else if (scheme != "always") {
    node.fail("the prepend_scheme '" + scheme + "' is not known");
  }
  return std::make_unique<Metaspace>(node.character("replacement"), parsed,
                                     node.boolean_or("split", true));
}

std::unique_ptr<PreTokenizer> read_sequence(const JsonNode& node) {
  node.only_keys({"type", "pretokenizers"});
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const JsonNode& step : node.array("pretokenizers"))
    steps.push_back(read_pre_tokenizer(step));
  return std::make_unique<Sequence>(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_byte_level(const JsonNode& node) {
  node.only_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return std::make_unique<ByteLevel>(node.boolean("add_prefix_space"),
                                     node.boolean_or("use_regex", true));
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node) {
  const std::string type = node.string("type");
  if (type == "Sequence") return read_sequence(node);
  if (type == "ByteLevel") return read_byte_level(node);
  if (type == "Metaspace") return read_metaspace(node);
  if (type == "Split") {
    node.only_keys({"type", "pattern", "behavior", "invert"});
    const SplitRule rule{read_split_behavior(node), node.boolean_or("invert", false)};
    return std::make_unique<Split>(read_pattern(node), rule);
  }
  if (type == "Digits") {
    node.only_keys({"type", "individual_digits"});
    const SplitRule rule{
        node.boolean("individual_digits") ? SplitBehavior::isolated : SplitBehavior::contiguous,
        false};
    return std::make_unique<CharacterSplit>(is_numeric, rule);
  }
  if (type == "Punctuation") {
    node.only_keys({"type", "behavior"});
    const SplitRule rule{node.has("behavior") ? read_split_behavior(node) : SplitBehavior::isolated,
                         false};
    return std::make_unique<CharacterSplit>(is_punctuation, rule);
  }
  if (type == "BertPreTokenizer") {
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    steps.push_back(
        std::make_unique<CharacterSplit>(is_white_space, SplitRule{SplitBehavior::removed, false}));
    steps.push_back(std::make_unique<CharacterSplit>(is_punctuation,
                                                     SplitRule{SplitBehavior::isolated, false}));
    return std::make_unique<Sequence>(std::move(steps));
  }
  if (type == "CharDelimiterSplit") {
    node.only_keys({"type", "delimiter"});
    return std::make_unique<CharDelimiterSplit>(node.character("delimiter"));
  }
  if (type == "FixedLength") {
    node.only_keys({"type", "length"});
    const int64_t length = node.integer("length");
    if (length < 1) node.fail("the length must be at least 1");
    return std::make_unique<FixedLength>(static_cast<size_t>(length));
  }
  if (type == "WhitespaceSplit")
    return std::make_unique<CharacterSplit>(is_white_space,
                                            SplitRule{SplitBehavior::removed, false});
  if (type == "Whitespace")
    return std::make_unique<Split>(Regex(kWhitespacePattern),
                                   SplitRule{SplitBehavior::removed, true});
  node.fail("the pre-tokenizer '" + type +
            "' is not supported; Snug reads Sequence, ByteLevel, Split, Digits, Punctuation, "
            "Whitespace, WhitespaceSplit, Metaspace, BertPreTokenizer, CharDelimiterSplit and "
            "FixedLength");
}

}  // namespace snug::text
