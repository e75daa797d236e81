// The syntax tree of a template. Immutable after parsing, so several renderings may read it at
// once. Names of variables are indices into Syntax::names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

struct Filter;
struct Test;
struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind : uint8_t {
    constant,   // value
    name,       // name
    list,       // parts
    tuple,      // parts
    dict,       // parts: key, value, key, value, ...
    attribute,  // parts[0].text
    item,       // parts[0][parts[1]]
    slice,      // parts[0][parts[1]:parts[2]:parts[3]], of which each may be null
    call,       // parts[0](parts[1], ..., named)
    // parts[0] | text(parts[1], ..., named); if parts[0] is null, the input is a block's text.
    filter,
    test,         // parts[0] is text(parts[1], ..., named)
    unary,        // text parts[0]: not, -, +
    binary,       // parts[0] text parts[1]: and, or, +, -, *, /, //, %, **
    compare,      // parts[0] operators[0] parts[1] operators[1] parts[2] ...
    concatenate,  // parts[0] ~ parts[1] ~ ...
    conditional   // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind = Kind::constant;
  int line = 1;
  int depth = 1;  // depth of nested expressions, itself included
  int name = -1;
  std::string text{};
  Value value{};
  std::vector<ExpressionPtr> parts{};
  std::vector<std::pair<std::string, ExpressionPtr>> named{};
  std::vector<std::string> operators{};  // ==, !=, <, <=, >, >=, in, not in
  const Filter* filter = nullptr;
  const Test* test = nullptr;
};

// The target of a set or a for loop: a variable, an attribute of a namespace, or a tuple of these.
struct Target {
  int name = -1;  // of the variable or the namespace
  std::string attribute{};
  std::vector<Target> several{};  // not empty: a tuple
};

struct Statement;
using Body = std::vector<Statement>;

// The parameters of a macro or a call block. Defaults belong to the last parameters.
struct Signature {
  std::vector<int> names{};
  std::vector<ExpressionPtr> defaults{};
  bool takes_more = false;        // the body reads varargs
  bool takes_more_named = false;  // the body reads kwargs
  bool takes_caller = false;      // the body reads caller
};

struct Statement {
  enum class Kind : uint8_t {
    data,        // text
    output,      // expressions[0]
    set,         // targets[0] = expressions[0]
    set_block,   // targets[0] = the body's output after the filters of expressions[0]
    branch,      // if expressions[i] then bodies[i]; an additional body is the else
    loop,        // for targets[0] in expressions[0], if expressions[1]: bodies[0], else bodies[1]
    macro,       // name(signature): bodies[0]
    call,        // expressions[0] is a call, whose caller(signature) is bodies[0]
    filter,      // the output of bodies[0] after the filters of expressions[0]
    with,        // targets[i] = expressions[i] in bodies[0]
    generation,  // bodies[0] writes what the assistant wrote
    break_loop,
    continue_loop
  };
  Kind kind = Kind::data;
  int line = 1;
  int name = -1;
  std::string text{};
  std::vector<ExpressionPtr> expressions{};
  std::vector<Target> targets{};
  std::vector<Body> bodies{};
  Signature signature{};
};

struct Syntax {
  std::vector<std::string> names;
  std::map<std::string, int, std::less<>> index;  // from names to their numbers
  Body body;
  bool has_generation = false;
  bool is_strict = false;  // what is undefined is an error where it is used

  // The number of a name, or -1.
  int index_of(std::string_view name) const {
    const auto at = index.find(name);
    return at == index.end() ? -1 : at->second;
  }
};

}  // namespace snug::text::jinja
