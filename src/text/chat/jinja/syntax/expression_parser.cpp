#include "text/chat/jinja/syntax/expression_parser.h"

#include <algorithm>
#include <memory>

namespace snug::text::jinja {

using ExpressionKind = Expression::Kind;

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

ExpressionPtr ExpressionParser::add(ExpressionPtr parent, ExpressionPtr part) const {
  if (part) {
    parent->depth = std::max(parent->depth, part->depth + 1);
    if (parent->depth > kMaxSourceDepth)
      TokenStream::fail_at(fmt::format("an expression nests deeper than {}", kMaxSourceDepth),
                           parent->line);
  }
  parent->parts.push_back(std::move(part));
  return parent;
}

int ExpressionParser::name_index(const std::string& name) {
  const auto [at, is_new] = index_.emplace(name, static_cast<int>(names_.size()));
  if (is_new) names_.push_back(name);
  return at->second;
}

ExpressionParser::Uses ExpressionParser::end_uses() {
  const Uses uses = uses_.back();
  uses_.pop_back();
  return uses;
}

ExpressionPtr ExpressionParser::expression() {
  const DepthGuard guard(stream_);
  ExpressionPtr value = disjunction();
  while (stream_.current().is_name("if")) {
    const int line = stream_.take().line;
    ExpressionPtr condition = disjunction();
    ExpressionPtr otherwise = stream_.skip_name("else") ? expression() : nullptr;
    ExpressionPtr node = add(make(ExpressionKind::conditional, line), std::move(value));
    value = add(add(std::move(node), std::move(condition)), std::move(otherwise));
  }
  return value;
}

ExpressionPtr ExpressionParser::without_condition() {
  const DepthGuard guard(stream_);
  return disjunction();
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, std::string_view end) {
  const int line = stream_.line();
  const auto is_end = [&] {
    const Token& token = stream_.current();
    return token.is(Token::Kind::output_end) || token.is(Token::Kind::block_end) ||
           token.is_mark(")") || (!end.empty() && token.is_name(end));
  };
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (!is_end()) {
    parts.push_back(with_condition ? expression() : without_condition());
    if (!stream_.current().is_mark(",")) break;
    stream_.take();
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts.front());
  if (parts.empty()) stream_.fail(fmt::format("expected an expression, found {}", stream_.found()));
  ExpressionPtr node = make(ExpressionKind::tuple, line);
  for (ExpressionPtr& part : parts) node = add(std::move(node), std::move(part));
  return node;
}

ExpressionPtr ExpressionParser::left_to_right(Level level,
                                              std::initializer_list<std::string_view> marks) {
  ExpressionPtr left = (this->*level)();
  const auto is_mark = [&](std::string_view mark) { return stream_.current().is_mark(mark); };
  while (std::any_of(marks.begin(), marks.end(), is_mark)) {
    const Token mark = stream_.take();
    ExpressionPtr node = add(make(ExpressionKind::binary, mark.line), std::move(left));
    node->text = mark.text;
    left = add(std::move(node), (this->*level)());
  }
  return left;
}

ExpressionPtr ExpressionParser::disjunction() {
  ExpressionPtr left = conjunction();
  while (stream_.current().is_name("or")) {
    ExpressionPtr node = add(make(ExpressionKind::binary, stream_.take().line), std::move(left));
    node->text = "or";
    left = add(std::move(node), conjunction());
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  ExpressionPtr left = negation();
  while (stream_.current().is_name("and")) {
    ExpressionPtr node = add(make(ExpressionKind::binary, stream_.take().line), std::move(left));
    node->text = "and";
    left = add(std::move(node), negation());
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!stream_.current().is_name("not")) return comparison();
  const DepthGuard guard(stream_);
  ExpressionPtr node = make(ExpressionKind::unary, stream_.take().line);
  node->text = "not";
  return add(std::move(node), negation());
}

std::optional<std::string> ExpressionParser::comparison_operator() {
  const Token& token = stream_.current();
  for (const char* mark : {"==", "!=", "<=", ">=", "<", ">"})
    if (token.is_mark(mark)) return stream_.take().text;
  if (token.is_name("in")) return stream_.take().text;
  if (token.is_name("not") && stream_.following().is_name("in")) {
    stream_.take();
    stream_.take();
    return "not in";
  }
  return std::nullopt;
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = stream_.line();
  ExpressionPtr first = sum();
  auto found = comparison_operator();
  if (!found) return first;
  ExpressionPtr node = add(make(ExpressionKind::compare, line), std::move(first));
  for (; found; found = comparison_operator()) {
    node->operators.push_back(std::move(*found));
    node = add(std::move(node), sum());
  }
  return node;
}

ExpressionPtr ExpressionParser::sum() {
  return left_to_right(&ExpressionParser::concatenation, {"+", "-"});
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = stream_.line();
  ExpressionPtr first = product();
  if (!stream_.current().is_mark("~")) return first;
  ExpressionPtr node = add(make(ExpressionKind::concatenate, line), std::move(first));
  while (stream_.skip_mark("~")) node = add(std::move(node), product());
  return node;
}

ExpressionPtr ExpressionParser::product() {
  return left_to_right(&ExpressionParser::power, {"*", "/", "//", "%"});
}

ExpressionPtr ExpressionParser::power() {
  return left_to_right(&ExpressionParser::unary_with_filters, {"**"});
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const DepthGuard guard(stream_);
  ExpressionPtr node;
  if (stream_.current().is_mark("-") || stream_.current().is_mark("+")) {
    const Token mark = stream_.take();
    node = make(ExpressionKind::unary, mark.line);
    node->text = mark.text;
    node = add(std::move(node), unary(false));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters(std::move(node)) : std::move(node);
}

Target ExpressionParser::to_target(const Expression& node) const {
  Target target;
  if (node.kind == ExpressionKind::name) {
    target.name = node.name;
  } else if (node.kind == ExpressionKind::tuple || node.kind == ExpressionKind::list) {
    for (const ExpressionPtr& part : node.parts) target.several.push_back(to_target(*part));
  }
  if (target.name < 0 && target.several.empty())
    TokenStream::fail_at("only names can be assigned to", node.line);
  return target;
}

Target ExpressionParser::target(std::string_view end) {
  if (stream_.current().is(Token::Kind::name) && stream_.following().is_mark(".")) {
    Target target;
    target.name = name_index(stream_.take().text);
    stream_.take();
    target.attribute = stream_.expect_any_name();
    return target;
  }
  const int line = stream_.line();
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (parts.empty() || !stream_.current().is_name(end)) {
    parts.push_back(primary());
    if (!stream_.skip_mark(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) return to_target(*parts.front());
  ExpressionPtr all = make(ExpressionKind::tuple, line);
  for (ExpressionPtr& part : parts) all = add(std::move(all), std::move(part));
  return to_target(*all);
}

}  // namespace snug::text::jinja
