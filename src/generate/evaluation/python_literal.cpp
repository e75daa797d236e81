#include "generate/evaluation/python_literal.h"

#include <charconv>
#include <string>

#include "text/chat/jinja/values/python_text.h"
#include "text/unicode/utf8.h"

namespace snug::generate {
namespace {

using text::jinja::List;
using text::jinja::Value;
using Result = std::optional<Value>;

class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  Result run() {
    Result result = value(0);
    skip_space();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  static constexpr int kDepth = 32;

  bool takes(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool takes(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != kNowhere) ++at_;
  }

  Result value(int depth) {
    skip_space();
    if (depth > kDepth || at_ == text_.size()) return std::nullopt;
    if (takes('[')) return sequence(']', depth);
    if (takes('(')) return sequence(')', depth);
    if (takes("True")) return Value::boolean(true);
    if (takes("False")) return Value::boolean(false);
    if (takes("None")) return Value::none();
    if (text_[at_] == '\'' || text_[at_] == '"') return texts();
    return number();
  }

  // After the bracket that opens it. A tuple of one item ends in a comma.
  Result sequence(char closing, int depth) {
    List items;
    bool has_comma = false;
    for (skip_space(); !takes(closing); skip_space()) {
      if (!items.empty() && !has_comma) return std::nullopt;
      Result item = value(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
      skip_space();
      has_comma = takes(',');
    }
    if (closing == ']') return Value::list(std::move(items));
    if (items.size() == 1 && !has_comma) return items.front();
    return Value::list(std::move(items), Value::Kind::tuple);
  }

  // Texts that follow each other are one.
  Result texts() {
    std::string all;
    for (skip_space(); at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
         skip_space())
      if (!add_text(all)) return std::nullopt;
    return Value::text(std::move(all));
  }

  bool add_text(std::string& all) {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\n') return false;
      if (!takes('\\')) {
        all += text_[at_++];
      } else if (!add_escape(all)) {
        return false;
      }
    }
    return takes(quote);
  }

  bool add_escape(std::string& all) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    constexpr std::string_view kLetters = "ntrabfv\\'\"0\n";
    constexpr std::string_view kMeanings{"\n\t\r\a\b\f\v\\'\"\0", 11};
    if (const size_t known = kLetters.find(c); known != kNowhere) {
      if (known < kMeanings.size()) all += kMeanings[known];
      return true;
    }
    if (c == 'x') return add_code(all, 2);
    if (c == 'u') return add_code(all, 4);
    if (c == 'U') return add_code(all, 8);
    (all += '\\') += c;
    return true;
  }

  bool add_code(std::string& all, size_t digits) {
    const std::string_view written = text_.substr(at_, digits);
    uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(written.data(), written.data() + written.size(), code, 16);
    if (error != std::errc() || end != written.data() + digits) return false;
    at_ += digits;
    text::append_code_point(all, static_cast<char32_t>(code));
    return true;
  }

  Result number() {
    const std::string_view rest = text_.substr(at_);
    const char* begin = rest.data();
    const char* end = begin + rest.size();
    int64_t whole = 0;
    const auto as_whole = std::from_chars(begin, end, whole);
    double real = 0;
    const auto as_real = std::from_chars(begin, end, real);
    if (as_real.ec != std::errc()) return std::nullopt;
    at_ += static_cast<size_t>(as_real.ptr - begin);
    if (as_whole.ec == std::errc() && as_whole.ptr == as_real.ptr) return Value::integer(whole);
    return Value::real(real);
  }

  static constexpr size_t kNowhere = std::string_view::npos;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result python_literal(std::string_view text) { return LiteralReader(text).run(); }

}  // namespace snug::generate
