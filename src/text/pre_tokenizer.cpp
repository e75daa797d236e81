#include "text/pre_tokenizer.h"

#include <string_view>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/growth.h"
#include "text/pattern.h"
#include "text/split_behavior.h"
#include "text/utf8.h"

namespace snug::text {
namespace {

constexpr const char* kByteLevelPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// \w+|[^\w\s]+ as Rust's regex crate reads it, which differs from Oniguruma in \w.
constexpr const char* kWhitespacePattern =
    "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]+"
    "|[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}\\s]+";

// Divides every word at what `find` reports: find(word, matches) fills ranges within the word.
template <typename Find>
void divide(Words& words, SplitRule rule, const Find& find) {
  std::vector<Words::Word> result;
  result.reserve(words.list.size());
  std::vector<Range> matches;
  std::vector<Range> parts;
  for (const Words::Word& word : words.list) {
    const auto text = std::string_view(words.buffer).substr(word.begin, word.end - word.begin);
    find(text, matches);
    if (matches.empty() && !rule.invert) {
      result.push_back(word);
      continue;
    }
    split_at(matches, text.size(), rule, parts);
    for (const Range& part : parts)
      result.push_back(
          {word.begin + part.begin, word.begin + part.end, word.at_text_start && part.begin == 0});
  }
  words.list = std::move(result);
}

// Every character for which `is_delimiter` holds is a match of its own.
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

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

class Split : public PreTokenizer {
 public:
  Split(Regex pattern, SplitRule rule) : pattern_(std::move(pattern)), rule_(rule) {}
  void apply(Words& words) const override {
    divide(words, rule_, [&](std::string_view text, std::vector<Range>& matches) {
      pattern_.find_all(text, matches);
    });
  }

 private:
  Regex pattern_;
  SplitRule rule_;
};

class CharacterSplit : public PreTokenizer {
 public:
  CharacterSplit(bool (*is_delimiter)(char32_t), SplitRule rule)
      : is_delimiter_(is_delimiter), rule_(rule) {}
  void apply(Words& words) const override {
    divide(words, rule_, [&](std::string_view text, std::vector<Range>& matches) {
      find_characters(text, is_delimiter_, matches);
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
    if (use_regex_)
      divide(words, {}, [&](std::string_view text, std::vector<Range>& matches) {
        pattern_.find_all(text, matches);
      });
    std::string mapped;
    mapped.reserve(words.buffer.size() + words.buffer.size() / 4);
    for (Words::Word& word : words.list) {
      const size_t begin = mapped.size();
      append_byte_characters(
          mapped, std::string_view(words.buffer).substr(word.begin, word.end - word.begin));
      word.begin = begin;
      word.end = mapped.size();
    }
    words.buffer = std::move(mapped);
  }

 private:
  static void prefix_words(Words& words) {
    std::string spaced;
    for (Words::Word& word : words.list) {
      const size_t begin = spaced.size();
      if (words.buffer[word.begin] != ' ') spaced += ' ';
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

enum class PrependScheme { always, first, never };

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)),
        scheme_(scheme),
        split_(split),
        pattern_(Regex::literal(replacement_)) {}

  void apply(Words& words) const override {
    std::string result;
    for (Words::Word& word : words.list) {
      const auto text = std::string_view(words.buffer).substr(word.begin, word.end - word.begin);
      const size_t begin = result.size();
      const bool starts_marked = text.starts_with(' ') || text.starts_with(replacement_);
      const bool wants = scheme_ == PrependScheme::always ||
                         (scheme_ == PrependScheme::first && word.at_text_start);
      if (wants && !starts_marked) result += replacement_;
      for (const char c : text) {
        if (c == ' ') {
          result += replacement_;
        } else {
          result += c;
        }
      }
      word.begin = begin;
      word.end = result.size();
    }
    words.buffer = std::move(result);
    if (!split_) return;
    divide(words, {SplitBehavior::merged_with_next, false},
           [&](std::string_view text, std::vector<Range>& matches) {
             pattern_.find_all(text, matches);
           });
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
  Regex pattern_;
};

std::unique_ptr<PreTokenizer> read_metaspace(const JsonNode& node) {
  node.only_keys({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  // Files written before prepend_scheme existed say add_prefix_space.
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
  if (type == "WhitespaceSplit")
    return std::make_unique<CharacterSplit>(is_white_space,
                                            SplitRule{SplitBehavior::removed, false});
  if (type == "Whitespace")
    return std::make_unique<Split>(Regex(kWhitespacePattern),
                                   SplitRule{SplitBehavior::removed, true});
  node.fail("the pre-tokenizer '" + type +
            "' is not supported; Snug reads Sequence, ByteLevel, Split, Digits, Punctuation, "
            "Whitespace, WhitespaceSplit and Metaspace");
}

}  // namespace snug::text
