// Parses operands: literals and names, followed by attributes, items, calls, filters and tests.
#include <charconv>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/functions/tests.h"
#include "text/chat/jinja/syntax/expression_parser.h"

namespace snug::text::jinja {

using ExpressionKind = Expression::Kind;

ExpressionPtr ExpressionParser::primary() {
  const DepthGuard guard(stream_);
  const Token& token = stream_.current();
  switch (token.kind) {
    case Token::Kind::name:
      return constant_or_name();
    case Token::Kind::text:
      return string();
    case Token::Kind::integer:
    case Token::Kind::real:
      return number();
    case Token::Kind::mark:
      if (token.text == "(") return parenthesised();
      if (token.text == "[") return list();
      if (token.text == "{") return dict();
      break;
    default:
      break;
  }
  stream_.fail(fmt::format("{} is not expected here", stream_.found()));
}

ExpressionPtr ExpressionParser::constant_or_name() {
  const Token token = stream_.take();
  ExpressionPtr node = make(ExpressionKind::constant, token.line);
  if (token.text == "true" || token.text == "True") {
    node->value = Value::boolean(true);
  } else if (token.text == "false" || token.text == "False") {
    node->value = Value::boolean(false);
  } else if (token.text == "none" || token.text == "None") {
    node->value = Value::none();
  } else {
    node->kind = ExpressionKind::name;
    node->name = name_index(token.text);
    for (Uses& uses : uses_) {
      uses.caller = uses.caller || token.text == "caller";
      uses.kwargs = uses.kwargs || token.text == "kwargs";
      uses.varargs = uses.varargs || token.text == "varargs";
    }
  }
  return node;
}

ExpressionPtr ExpressionParser::number() {
  const Token token = stream_.take();
  ExpressionPtr node = make(ExpressionKind::constant, token.line);
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  int64_t whole = 0;
  double real = 0;
  const bool is_whole = token.is(Token::Kind::integer);
  const auto result =
      is_whole ? std::from_chars(begin, end, whole) : std::from_chars(begin, end, real);
  if (result.ec != std::errc() || result.ptr != end)
    TokenStream::fail_at(fmt::format("the number {} is too large", token.text), token.line);
  node->value = is_whole ? Value::integer(whole) : Value::real(real);
  return node;
}

// Adjacent string literals are joined.
ExpressionPtr ExpressionParser::string() {
  ExpressionPtr node = make(ExpressionKind::constant, stream_.line());
  std::string text;
  while (stream_.current().is(Token::Kind::text)) text += stream_.take().text;
  node->value = Value::text(std::move(text));
  return node;
}

ExpressionPtr ExpressionParser::list() {
  ExpressionPtr node = make(ExpressionKind::list, stream_.take().line);
  while (!stream_.skip_mark("]")) {
    if (!node->parts.empty()) {
      stream_.expect_mark(",");
      if (stream_.skip_mark("]")) break;
    }
    node = add(std::move(node), expression());
  }
  return node;
}

ExpressionPtr ExpressionParser::dict() {
  ExpressionPtr node = make(ExpressionKind::dict, stream_.take().line);
  while (!stream_.skip_mark("}")) {
    if (!node->parts.empty()) {
      stream_.expect_mark(",");
      if (stream_.skip_mark("}")) break;
    }
    node = add(std::move(node), expression());
    stream_.expect_mark(":");
    node = add(std::move(node), expression());
  }
  return node;
}

ExpressionPtr ExpressionParser::parenthesised() {
  const int line = stream_.take().line;
  if (stream_.skip_mark(")")) return make(ExpressionKind::tuple, line);
  ExpressionPtr node = tuple(true);
  stream_.expect_mark(")");
  return node;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    if (stream_.current().is_mark(".")) {
      node = attribute(std::move(node));
    } else if (stream_.current().is_mark("[")) {
      node = subscript(std::move(node));
    } else if (stream_.current().is_mark("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr node) {
  while (true) {
    if (stream_.current().is_mark("|")) {
      const int line = stream_.take().line;
      node = one_filter(std::move(node), line);
    } else if (stream_.current().is_name("is")) {
      node = test(std::move(node));
    } else if (stream_.current().is_mark("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr node) {
  const int line = stream_.take().line;
  if (stream_.current().is(Token::Kind::integer)) {
    ExpressionPtr index = number();
    return add(add(make(ExpressionKind::item, line), std::move(node)), std::move(index));
  }
  ExpressionPtr result = add(make(ExpressionKind::attribute, line), std::move(node));
  result->text = stream_.expect_any_name();
  return result;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  const int line = stream_.take().line;
  const auto bound = [&]() -> ExpressionPtr {
    const bool is_open = stream_.current().is_mark(":") || stream_.current().is_mark("]");
    return is_open ? nullptr : expression();
  };
  if (stream_.current().is_mark("]")) stream_.fail("expected an index, found ']'");
  ExpressionPtr first = bound();
  if (first && !stream_.current().is_mark(":")) {
    if (stream_.current().is_mark(",")) stream_.fail("an index of several values is not supported");
    stream_.expect_mark("]");
    return add(add(make(ExpressionKind::item, line), std::move(node)), std::move(first));
  }
  stream_.expect_mark(":");
  ExpressionPtr result =
      add(add(make(ExpressionKind::slice, line), std::move(node)), std::move(first));
  result = add(std::move(result), bound());
  const bool has_step = stream_.skip_mark(":");
  result = add(std::move(result), has_step ? bound() : nullptr);
  stream_.expect_mark("]");
  return result;
}

ExpressionPtr ExpressionParser::one_filter(ExpressionPtr node, int line) {
  ExpressionPtr result = add(make(ExpressionKind::filter, line), std::move(node));
  result->text = stream_.expect_any_name();
  result->filter = find_filter(result->text);
  if (result->filter == nullptr)
    TokenStream::fail_at(fmt::format("the filter '{}' is not supported", result->text), line);
  if (stream_.current().is_mark("(")) arguments(*result);
  return result;
}

ExpressionPtr ExpressionParser::block_filters(bool begins_with_name) {
  ExpressionPtr node;
  if (begins_with_name) node = one_filter(nullptr, stream_.line());
  while (stream_.current().is_mark("|")) {
    const int line = stream_.take().line;
    node = one_filter(std::move(node), line);
  }
  return node;
}

bool ExpressionParser::begins_argument_of_test() const {
  const Token& token = stream_.current();
  switch (token.kind) {
    case Token::Kind::name:
      return !token.is_name("else") && !token.is_name("or") && !token.is_name("and");
    case Token::Kind::text:
    case Token::Kind::integer:
    case Token::Kind::real:
      return true;
    default:
      return token.is_mark("[") || token.is_mark("{");
  }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr node) {
  const int line = stream_.take().line;
  const bool is_negated = stream_.skip_name("not");
  ExpressionPtr result = add(make(ExpressionKind::test, line), std::move(node));
  result->text = stream_.expect_any_name();
  result->test = find_test(result->text);
  if (result->test == nullptr)
    TokenStream::fail_at(fmt::format("the test '{}' is not supported", result->text), line);
  if (stream_.current().is_mark("(")) {
    arguments(*result);
  } else if (begins_argument_of_test()) {
    if (stream_.current().is_name("is")) stream_.fail("tests cannot be chained with 'is'");
    result = add(std::move(result), postfix(primary()));
  }
  if (!is_negated) return result;
  ExpressionPtr negated = make(ExpressionKind::unary, line);
  negated->text = "not";
  return add(std::move(negated), std::move(result));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  ExpressionPtr result = add(make(ExpressionKind::call, stream_.line()), std::move(node));
  arguments(*result);
  return result;
}

void ExpressionParser::arguments(Expression& node) {
  const DepthGuard guard(stream_);
  stream_.expect_mark("(");
  bool is_first = true;
  while (!stream_.skip_mark(")")) {
    if (!is_first) {
      stream_.expect_mark(",");
      if (stream_.skip_mark(")")) break;
    }
    is_first = false;
    if (stream_.current().is_mark("*") || stream_.current().is_mark("**"))
      stream_.fail("'*' and '**' before an argument are not supported");
    std::string name;
    if (stream_.current().is(Token::Kind::name) && stream_.following().is_mark("=")) {
      name = stream_.take().text;
      stream_.take();
    } else if (!node.named.empty()) {
      stream_.fail("an argument without a name follows one with a name");
    }
    ExpressionPtr value = expression();
    node.depth = std::max(node.depth, value->depth + 1);
    if (node.depth > kMaxSourceDepth)
      stream_.fail(fmt::format("an expression nests deeper than {}", kMaxSourceDepth));
    if (name.empty()) {
      node.parts.push_back(std::move(value));
    } else {
      node.named.emplace_back(std::move(name), std::move(value));
    }
  }
}

}  // namespace snug::text::jinja
