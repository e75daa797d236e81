// Parses a template's expressions with jinja2's grammar and precedence: a filter binds tighter than
// an operator, and "not" binds looser than a comparison.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/jinja/syntax/ast.h"
#include "text/chat/jinja/syntax/token_stream.h"

namespace snug::text::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExpressionPtr expression();  // including "if ... else ..."
  // For a for loop, where "if" begins the loop's condition.
  ExpressionPtr without_condition();
  // Several expressions with commas between them are a tuple. Parsing also ends at the name `end`.
  ExpressionPtr tuple(bool with_condition, std::string_view end = "");
  // Parses "| filter | filter", through which a block's output goes; null if there are none.
  ExpressionPtr block_filters(bool begins_with_name);
  // Parses what comes before "=" or "in".
  Target target(std::string_view end);

  int name_index(const std::string& name);
  std::vector<std::string> take_names() { return std::move(names_); }
  std::map<std::string, int, std::less<>> take_index() { return std::move(index_); }

  // Which of caller, kwargs and varargs are read from here on; see Signature.
  struct Uses {
    bool caller = false;
    bool kwargs = false;
    bool varargs = false;
  };
  void begin_uses() { uses_.emplace_back(); }
  Uses end_uses();

 private:
  ExpressionPtr make(Expression::Kind kind, int line) const;
  ExpressionPtr add(ExpressionPtr parent, ExpressionPtr part) const;  // part may be null
  using Level = ExpressionPtr (ExpressionParser::*)();
  ExpressionPtr left_to_right(Level level, std::initializer_list<std::string_view> marks);

  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  std::optional<std::string> comparison_operator();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary_with_filters() { return unary(true); }
  ExpressionPtr unary(bool with_filters);

  ExpressionPtr primary();
  ExpressionPtr constant_or_name();
  ExpressionPtr number();
  ExpressionPtr string();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr parenthesised();

  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters(ExpressionPtr node);
  ExpressionPtr attribute(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr one_filter(ExpressionPtr node, int line);
  ExpressionPtr test(ExpressionPtr node);
  ExpressionPtr call(ExpressionPtr node);
  void arguments(Expression& node);

  Target to_target(const Expression& node) const;
  bool begins_argument_of_test() const;

  TokenStream& stream_;
  std::vector<std::string> names_;
  std::map<std::string, int, std::less<>> index_;
  std::vector<Uses> uses_;
};

}  // namespace snug::text::jinja
