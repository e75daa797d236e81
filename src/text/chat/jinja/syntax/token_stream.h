// The tokens of a template for the parsers, with the current line for errors and the current depth.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/syntax/lexer.h"

namespace snug::text::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return current().line; }

  Token take() {
    Token token = current();
    if (!token.is(Token::Kind::end)) ++at_;
    return token;
  }

  bool skip_mark(std::string_view mark) { return skip(current().is_mark(mark)); }
  bool skip_name(std::string_view name) { return skip(current().is_name(name)); }

  void expect_mark(std::string_view mark) {
    if (!skip_mark(mark)) fail(fmt::format("expected '{}', found {}", mark, found()));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail(fmt::format("expected '{}', found {}", name, found()));
  }
  void expect(Token::Kind kind) {
    if (!skip(current().is(kind))) fail(fmt::format("{} is not expected here", found()));
  }
  std::string expect_any_name() {
    if (!current().is(Token::Kind::name)) fail(fmt::format("expected a name, found {}", found()));
    return take().text;
  }

  // A description of the current token.
  std::string found() const {
    switch (current().kind) {
      case Token::Kind::output_end:
      case Token::Kind::block_end:
        return "the end of the tag";
      case Token::Kind::end:
        return "the end of the template";
      case Token::Kind::data:
      case Token::Kind::output_begin:
      case Token::Kind::block_begin:
        return "a text";
      case Token::Kind::text:
        return "a text in quotes";
      default:
        return "'" + current().text + "'";
    }
  }

  [[noreturn]] void fail(std::string message) const { fail_at(std::move(message), line()); }
  [[noreturn]] static void fail_at(std::string message, int line) {
    throw SyntaxError{std::move(message), line};
  }

  void enter() {
    if (++depth_ > kMaxSourceDepth)
      fail(fmt::format("blocks and expressions nest deeper than {}", kMaxSourceDepth));
  }
  void leave() { --depth_; }

 private:
  bool skip(bool matches) {
    if (matches) take();
    return matches;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

// Counts one level of nesting in the source while it is parsed.
class DepthGuard {
 public:
  explicit DepthGuard(TokenStream& stream) : stream_(stream) { stream_.enter(); }
  ~DepthGuard() { stream_.leave(); }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  TokenStream& stream_;
};

}  // namespace snug::text::jinja
