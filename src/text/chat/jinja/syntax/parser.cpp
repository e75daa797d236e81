#include "text/chat/jinja/syntax/parser.h"

#include <algorithm>
#include <initializer_list>

#include "text/chat/jinja/syntax/expression_parser.h"

namespace snug::text::jinja {
namespace {

using StatementKind = Statement::Kind;
using TokenKind = Token::Kind;
using Ends = std::initializer_list<std::string_view>;

class Parser {
 public:
  Parser(std::string_view source, bool trims_lines)
      : stream_(tokens_of(source, trims_lines)), expressions_(stream_) {}

  Syntax run() {
    Syntax syntax;
    syntax.body = body({});
    syntax.names = expressions_.take_names();
    syntax.index = expressions_.take_index();
    syntax.has_generation = has_generation_;
    return syntax;
  }

 private:
  static Statement make(StatementKind kind, int line) {
    Statement statement;
    statement.kind = kind;
    statement.line = line;
    return statement;
  }

  // Statements up to a tag named in `ends`; the stream is then at that tag's name.
  Body body(Ends ends) {
    const DepthGuard guard(stream_);
    Body statements;
    while (true) {
      const Token& token = stream_.current();
      if (token.is(TokenKind::end)) {
        if (ends.size() > 0) stream_.fail(fmt::format("expected '{}'", *(ends.end() - 1)));
        return statements;
      }
      if (token.is(TokenKind::data)) {
        statements.push_back(make(StatementKind::data, token.line));
        statements.back().text = stream_.take().text;
      } else if (token.is(TokenKind::output_begin)) {
        statements.push_back(output());
      } else {
        // Skips the opening of the block.
        stream_.take();
        const Token& tag = stream_.current();
        if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return tag.is_name(end); }))
          return statements;
        statements.push_back(block());
        stream_.expect(TokenKind::block_end);
      }
    }
  }

  // The body of a tag that ends with the tag `end`, whose closing mark is left to the caller.
  Body body_up_to(std::string_view end) {
    stream_.expect(TokenKind::block_end);
    Body statements = body({end});
    stream_.take();
    return statements;
  }

  // The body of a macro, in which break and continue do not refer to an outer loop.
  Body own_body(std::string_view end) {
    const int loops = loops_;
    loops_ = 0;
    Body statements = body_up_to(end);
    loops_ = loops;
    return statements;
  }

  Statement output() {
    Statement statement = make(StatementKind::output, stream_.take().line);
    statement.expressions.push_back(expressions_.tuple(true));
    stream_.expect(TokenKind::output_end);
    return statement;
  }

  Statement block() {
    const int line = stream_.line();
    const std::string tag = stream_.expect_any_name();
    if (tag == "if") return branch(line);
    if (tag == "for") return loop(line);
    if (tag == "set") return set(line);
    if (tag == "macro") return macro(line);
    if (tag == "call") return call(line);
    if (tag == "filter") return filter(line);
    if (tag == "with") return with(line);
    if (tag == "generation") return generation(line);
    if (tag == "break" || tag == "continue") return jump(tag, line);
    TokenStream::fail_at(fmt::format("the tag '{}' is not supported", tag), line);
  }

  Statement branch(int line) {
    Statement statement = make(StatementKind::branch, line);
    while (true) {
      statement.expressions.push_back(expressions_.tuple(false));
      stream_.expect(TokenKind::block_end);
      statement.bodies.push_back(body({"elif", "else", "endif"}));
      const std::string tag = stream_.take().text;
      if (tag == "endif") return statement;
      if (tag == "elif") continue;
      statement.bodies.push_back(body_up_to("endif"));
      return statement;
    }
  }

  Statement loop(int line) {
    Statement statement = make(StatementKind::loop, line);
    statement.targets.push_back(expressions_.target("in"));
    if (!statement.targets.front().attribute.empty())
      TokenStream::fail_at("a loop over an attribute is not supported", line);
    stream_.expect_name("in");
    statement.expressions.push_back(expressions_.tuple(false, "recursive"));
    if (stream_.skip_name("if")) statement.expressions.push_back(expressions_.expression());
    if (stream_.current().is_name("recursive")) stream_.fail("recursive loops are not supported");
    stream_.expect(TokenKind::block_end);
    ++loops_;
    statement.bodies.push_back(body({"else", "endfor"}));
    --loops_;
    if (stream_.take().text == "else") statement.bodies.push_back(body_up_to("endfor"));
    return statement;
  }

  Statement set(int line) {
    Statement statement = make(StatementKind::set, line);
    statement.targets.push_back(expressions_.target(""));
    if (stream_.skip_mark("=")) {
      statement.expressions.push_back(expressions_.tuple(true));
      return statement;
    }
    statement.kind = StatementKind::set_block;
    statement.expressions.push_back(expressions_.block_filters(false));
    statement.bodies.push_back(body_up_to("endset"));
    return statement;
  }

  Signature signature() {
    Signature result;
    stream_.expect_mark("(");
    while (!stream_.skip_mark(")")) {
      if (!result.names.empty()) stream_.expect_mark(",");
      result.names.push_back(expressions_.name_index(stream_.expect_any_name()));
      if (stream_.skip_mark("=")) {
        result.defaults.push_back(expressions_.expression());
      } else if (!result.defaults.empty()) {
        stream_.fail("a parameter without a default follows one with a default");
      }
    }
    return result;
  }

  void take_uses(Signature& result) {
    const auto uses = expressions_.end_uses();
    const auto is_named = [&](const char* name) {
      const int index = expressions_.name_index(name);
      return std::find(result.names.begin(), result.names.end(), index) != result.names.end();
    };
    if (is_named("caller")) stream_.fail("a parameter named 'caller' is not supported");
    result.takes_caller = uses.caller;
    result.takes_more = uses.varargs && !is_named("varargs");
    result.takes_more_named = uses.kwargs && !is_named("kwargs");
  }

  Statement macro(int line) {
    Statement statement = make(StatementKind::macro, line);
    statement.text = stream_.expect_any_name();
    statement.name = expressions_.name_index(statement.text);
    statement.signature = signature();
    expressions_.begin_uses();
    statement.bodies.push_back(own_body("endmacro"));
    take_uses(statement.signature);
    return statement;
  }

  Statement call(int line) {
    Statement statement = make(StatementKind::call, line);
    if (stream_.current().is_mark("(")) statement.signature = signature();
    statement.expressions.push_back(expressions_.expression());
    if (statement.expressions.front()->kind != Expression::Kind::call)
      TokenStream::fail_at("expected a call after the tag 'call'", line);
    expressions_.begin_uses();
    statement.bodies.push_back(own_body("endcall"));
    take_uses(statement.signature);
    return statement;
  }

  Statement filter(int line) {
    Statement statement = make(StatementKind::filter, line);
    statement.expressions.push_back(expressions_.block_filters(true));
    statement.bodies.push_back(body_up_to("endfilter"));
    return statement;
  }

  Statement with(int line) {
    Statement statement = make(StatementKind::with, line);
    while (!stream_.current().is(TokenKind::block_end)) {
      if (!statement.targets.empty()) stream_.expect_mark(",");
      statement.targets.push_back(expressions_.target(""));
      if (!statement.targets.back().attribute.empty())
        TokenStream::fail_at("the tag 'with' sets names only", line);
      stream_.expect_mark("=");
      statement.expressions.push_back(expressions_.expression());
    }
    statement.bodies.push_back(body_up_to("endwith"));
    return statement;
  }

  Statement generation(int line) {
    Statement statement = make(StatementKind::generation, line);
    has_generation_ = true;
    statement.bodies.push_back(own_body("endgeneration"));
    return statement;
  }

  Statement jump(const std::string& tag, int line) const {
    if (loops_ == 0) TokenStream::fail_at(fmt::format("'{}' stands outside of a loop", tag), line);
    return make(tag == "break" ? StatementKind::break_loop : StatementKind::continue_loop, line);
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  int loops_ = 0;  // number of loops around the current place
  bool has_generation_ = false;
};

}  // namespace

Syntax parse_template(std::string_view source, bool trims_lines) {
  if (source.size() > kMaxSourceBytes)
    throw SyntaxError{fmt::format("the template has {} bytes, more than the {} that are read",
                                  source.size(), kMaxSourceBytes),
                      1};
  return Parser(source, trims_lines).run();
}

}  // namespace snug::text::jinja
