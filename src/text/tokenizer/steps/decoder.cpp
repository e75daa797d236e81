#include "text/tokenizer/steps/decoder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/tokenizer/model/growth.h"
#include "text/tokenizer/steps/byte_alphabet.h"
#include "text/tokenizer/steps/pattern.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

std::string join(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

class Sequence : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  void apply(std::vector<std::string>& tokens, size_t most) const override {
    for (const auto& step : steps_) step->apply(tokens, most);
  }
  Added add(std::string& token, bool& is_fused) const override {
    for (const auto& step : steps_)
      if (step->add(token, is_fused) == Added::unknown) return Added::unknown;
    return Added::bytes;
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

class ByteLevel : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += bytes_of(token);
    tokens = {repair_utf8(bytes)};
  }
  Added add(std::string& token, bool& is_fused) const override {
    if (is_fused) return Added::unknown;
    token = bytes_of(token);
    return Added::bytes;
  }

 private:
  // A token with characters outside the alphabet, such as an added token, is kept as text.
  static std::string bytes_of(const std::string& token) {
    std::string bytes;
    for (size_t i = 0; i < token.size();) {
      const CodePoint point = code_point_at(token, i);
      const auto byte = byte_of_character(point.value);
      if (!byte) return token;
      bytes += *byte;
      i += point.size;
    }
    return bytes;
  }
};

class ByteFallback : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    std::vector<std::string> result;
    std::string bytes;
    const auto flush = [&] {
      if (find_invalid_utf8(bytes) == std::string::npos) {
        if (!bytes.empty()) result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), std::string(kReplacementCharacter));
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += *byte;
        continue;
      }
      flush();
      result.push_back(std::move(token));
    }
    flush();
    tokens = std::move(result);
  }
  Added add(std::string& token, bool& is_fused) const override {
    if (is_fused) return Added::unknown;
    if (const auto byte = byte_of(token)) token = *byte;
    return Added::bytes;
  }

 private:
  // Decodes a byte token: <0x41> is the byte 0x41.
  static std::optional<char> byte_of(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    int value = 0;
    for (const char c : {token[3], token[4]}) {
      int digit = 0;
      if (c >= '0' && c <= '9') {
        digit = c - '0';
      } else if (c >= 'A' && c <= 'F') {
        digit = c - 'A' + 10;
      } else if (c >= 'a' && c <= 'f') {
        digit = c - 'a' + 10;
      } else {
        return std::nullopt;
      }
      value = value * 16 + digit;
    }
    return static_cast<char>(value);
  }
};

class Fuse : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    tokens = {join(tokens)};
  }
  Added add(std::string& /*token*/, bool& is_fused) const override {
    is_fused = true;
    return Added::bytes;
  }
};

class Strip : public Decoder {
 public:
  Strip(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    for (std::string& token : tokens) {
      for (int64_t i = 0; i < start_ && token.starts_with(content_); ++i)
        token.erase(0, content_.size());
      for (int64_t i = 0; i < stop_ && token.ends_with(content_); ++i)
        token.erase(token.size() - content_.size());
    }
  }
  Added add(std::string& token, bool& is_fused) const override {
    // Of a whole text only its beginning is stripped, which is before this token.
    if (is_fused) return stop_ == 0 ? Added::bytes : Added::unknown;
    std::vector<std::string> one{token};
    apply(one, 0);
    token = std::move(one.front());
    return Added::bytes;
  }

 private:
  std::string content_;
  int64_t start_;
  int64_t stop_;
};

class Replace : public Decoder {
 public:
  Replace(Regex pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(std::vector<std::string>& tokens, size_t most) const override {
    for (std::string& token : tokens) {
      replace_all(token, pattern_, content_, most);
      most -= std::min(most, token.size());
    }
  }
  Added add(std::string& token, bool& is_fused) const override {
    // Bytes that are a part of a character hold nothing that is replaced.
    if (is_fused) return Added::unknown;
    if (find_invalid_utf8(token) == std::string::npos)
      replace_all(token, pattern_, content_, most_bytes_from(token.size()));
    return Added::bytes;
  }

 private:
  Regex pattern_;
  std::string content_;
};

class Metaspace : public Decoder {
 public:
  Metaspace(const std::string& replacement, bool drops_first)
      : pattern_(Regex::literal(replacement)), drops_first_(drops_first) {}
  void apply(std::vector<std::string>& tokens, size_t most) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], pattern_, i == 0 && drops_first_ ? "" : " ", most);
  }
  Added add(std::string& token, bool& is_fused) const override {
    if (is_fused) return Added::unknown;
    if (find_invalid_utf8(token) == std::string::npos)
      replace_all(token, pattern_, " ", most_bytes_from(token.size()));
    return Added::bytes;
  }

 private:
  Regex pattern_;
  bool drops_first_;
};

// Replaces every occurrence of `from`, which must not be empty, by `to`.
void replace_text(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, done)) {
    result.append(text, done, at - done);
    result += to;
    done = at + from.size();
  }
  if (done == 0) return;
  result.append(text, done);
  text = std::move(result);
}

// Removes spaces before English punctuation and contractions.
void clean_up(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules = {
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) replace_text(text, from, to);
}

class WordPiece : public Decoder {
 public:
  WordPiece(std::string prefix, bool cleans_up)
      : prefix_(std::move(prefix)), cleans_up_(cleans_up) {}
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else if (i > 0) {
        token = ' ' + token;
      }
      if (cleans_up_) clean_up(token);
    }
  }
  Added add(std::string& /*token*/, bool& /*is_fused*/) const override { return Added::unknown; }

 private:
  std::string prefix_;
  bool cleans_up_;
};

class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_text(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }
  Added add(std::string& /*token*/, bool& /*is_fused*/) const override { return Added::unknown; }

 private:
  std::string suffix_;
};

class Ctc : public Decoder {
 public:
  Ctc(std::string pad, std::string delimiter, bool cleans_up)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleans_up_(cleans_up) {}
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_text(token, pad_, "");
      if (!cleans_up_) continue;
      clean_up(token);
      replace_text(token, delimiter_, " ");
    }
    std::erase(tokens, "");
  }
  Added add(std::string& /*token*/, bool& /*is_fused*/) const override { return Added::unknown; }

 private:
  std::string pad_;
  std::string delimiter_;
  bool cleans_up_;
};

// The string under a key of the component, which must not be empty.
std::string text_of(const JsonNode& node, std::string_view key) {
  std::string text = node.string(key);
  if (text.empty()) node.fail(fmt::format("an empty '{}' is not supported", key));
  return text;
}

std::unique_ptr<Decoder> read_sequence(const JsonNode& node) {
  node.only_keys({"type", "decoders"});
  std::vector<std::unique_ptr<Decoder>> steps;
  for (const JsonNode& step : node.array("decoders")) steps.push_back(read_decoder(step));
  return std::make_unique<Sequence>(std::move(steps));
}

std::unique_ptr<Decoder> read_strip(const JsonNode& node) {
  node.only_keys({"type", "content", "start", "stop"});
  return std::make_unique<Strip>(node.character("content"), node.integer("start"),
                                 node.integer("stop"));
}

std::unique_ptr<Decoder> read_metaspace(const JsonNode& node) {
  node.only_keys({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  const bool adds = node.boolean_or("add_prefix_space", true);
  const std::string scheme = node.string_or("prepend_scheme", adds ? "always" : "never");
  return std::make_unique<Metaspace>(node.character("replacement"), scheme != "never");
}

}  // namespace

std::unique_ptr<Decoder> read_decoder(const JsonNode& node) {
  const std::string type = node.string("type");
  if (type == "Sequence") return read_sequence(node);
  if (type == "Strip") return read_strip(node);
  if (type == "Metaspace") return read_metaspace(node);
  if (type == "ByteLevel") {
    node.only_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return std::make_unique<ByteLevel>();
  }
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Replace") {
    node.only_keys({"type", "pattern", "content"});
    return std::make_unique<Replace>(read_pattern(node), node.string("content"));
  }
  if (type == "WordPiece") {
    node.only_keys({"type", "prefix", "cleanup"});
    return std::make_unique<WordPiece>(node.string("prefix"), node.boolean("cleanup"));
  }
  if (type == "BPEDecoder") {
    node.only_keys({"type", "suffix"});
    return std::make_unique<BpeDecoder>(text_of(node, "suffix"));
  }
  if (type == "CTC") {
    node.only_keys({"type", "pad_token", "word_delimiter_token", "cleanup"});
    return std::make_unique<Ctc>(text_of(node, "pad_token"), text_of(node, "word_delimiter_token"),
                                 node.boolean("cleanup"));
  }
  node.fail("the decoder '" + type +
            "' is not supported; Snug reads Sequence, ByteLevel, ByteFallback, Fuse, Strip, "
            "Replace, Metaspace, WordPiece, BPEDecoder and CTC");
}

}  // namespace snug::text
