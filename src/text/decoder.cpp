#include "text/decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/pattern.h"
#include "text/utf8.h"

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

 private:
  // A token with characters outside the alphabet, such as an added token, stands for itself.
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

 private:
  // <0x41> is the byte 0x41.
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

 private:
  Regex pattern_;
  bool drops_first_;
};

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
  node.fail("the decoder '" + type +
            "' is not supported; Snug reads Sequence, ByteLevel, ByteFallback, Fuse, Strip, "
            "Replace and Metaspace");
}

}  // namespace snug::text
