#include "jinja_bombs.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace snug::text::jinja {
namespace {

using Words = std::string_view;

constexpr std::array<Words, 12> kNumbers{"0",   "1",    "2",      "-1",      "3",     "7",
                                         "100", "1000", "100000", "1000000", "50000", "10000"};
constexpr std::array<Words, 6> kEdges{
    "9223372036854775807", "(-9223372036854775807 - 1)", "1.5", "1e308", "-7", "99999"};

constexpr std::array<Words, 12> kParts{"'a'",   "''",    "' '",   "'ab'",
                                       "'\\n'", "','",   "'a,b'", "'\\u00e9'",
                                       "'%s'",  "'{0}'", "'-'",   "'\\U0001f600'"};

constexpr std::array<Words, 16> kPatterns{
    "'%s'",    "'%r'",           "'%999999d'", "'%.999f'", "'%(a)s'", "'{}'",
    "'{0!r}'", "'{0:>999999}'",  "'{a}'",      "'{0:.1}'", "'%c'",    "'{0[0]}'",
    "'{0.a}'", "'{:0=999999d}'", "'%.1s'",     "'{0:,d}'"};

constexpr std::array<Words, 43> kFilters{
    "abs",        "batch",  "capitalize", "center",  "count",       "d",      "default", "dictsort",
    "e",          "escape", "first",      "float",   "forceescape", "format", "indent",  "int",
    "items",      "join",   "last",       "length",  "list",        "lower",  "map",     "max",
    "min",        "reject", "rejectattr", "replace", "reverse",     "round",  "safe",    "select",
    "selectattr", "slice",  "sort",       "string",  "sum",         "title",  "tojson",  "trim",
    "truncate",   "unique", "upper"};

constexpr std::array<Words, 39> kTests{
    "!=",       "<",        "<=",          "==",       ">",           ">=",       "boolean",
    "callable", "defined",  "divisibleby", "eq",       "equalto",     "escaped",  "even",
    "false",    "filter",   "float",       "ge",       "greaterthan", "gt",       "in",
    "integer",  "iterable", "le",          "lessthan", "lower",       "lt",       "mapping",
    "ne",       "none",     "number",      "odd",      "sameas",      "sequence", "string",
    "test",     "true",     "undefined",   "upper"};

constexpr std::array<Words, 48> kMethods{
    "capitalize",   "center",       "count",   "endswith",   "find",       "format",  "index",
    "isalnum",      "isalpha",      "isascii", "isdecimal",  "isdigit",    "islower", "isnumeric",
    "isspace",      "isupper",      "join",    "ljust",      "lower",      "lstrip",  "partition",
    "removeprefix", "removesuffix", "replace", "rfind",      "rindex",     "rjust",   "rpartition",
    "rsplit",       "rstrip",       "split",   "splitlines", "startswith", "strip",   "swapcase",
    "title",        "upper",        "zfill",   "get",        "items",      "keys",    "values",
    "copy",         "append",       "pop",     "update",     "casefold",   "encode"};

constexpr std::array<Words, 6> kComparisons{"==", "!=", "<", "<=", ">", ">="};
constexpr std::array<Words, 6> kSums{"+", "-", "*", "//", "%", "**"};

// Texts of texts, and lists of lists.
constexpr std::array<Words, 8> kTextFilters{"upper", "lower", "trim",   "title",
                                            "e",     "safe",  "string", "reverse"};
constexpr std::array<Words, 9> kTextMethods{"upper",  "lower",    "title",      "strip", "lstrip",
                                            "rstrip", "swapcase", "capitalize", "strip"};
constexpr std::array<Words, 8> kSearches{"count",  "find",       "rfind",    "index",
                                         "rindex", "startswith", "endswith", "count"};
constexpr std::array<Words, 7> kListFilters{
    "list",          "reverse | list",       "sort",
    "unique | list", "map('string') | list", "map('length') | list",
    "select | list"};
constexpr std::array<Words, 7> kEnds{"first", "last", "max", "min", "join", "length", "tojson"};

}  // namespace

std::string BombMaker::number(int depth) {
  switch (pick(depth > 2 ? 2 : 6)) {
    case 0:
    case 1:
      return pick(30) == 0 ? one_of(kEdges) : one_of(kNumbers);
    case 2:
      return fmt::format("({}).{}({})", text(depth + 1), one_of(kSearches), text(depth + 1));
    case 3:
      return fmt::format("({} | {})", list(depth + 1), pick(8) > 0 ? "length" : "sum");
    case 4:
      return fmt::format("({}).{}({})", list(depth + 1), pick(8) > 0 ? "count" : "index",
                         value(depth + 1));
    default:
      return fmt::format("({} {} {})", number(depth + 1), one_of(kSums), number(depth + 1));
  }
}

std::string BombMaker::text(int depth) {
  switch (pick(depth > 2 ? 3 : 14)) {
    case 0:
      return one_of(kParts);
    case 1:
      return "s";
    case 2:
      return fmt::format("({} * {})", one_of(kParts), one_of(kNumbers));
    case 3:
      return fmt::format("({} ~ {})", text(depth + 1), value(depth + 1));
    case 4:
      return fmt::format("({} | {})", text(depth + 1), one_of(kTextFilters));
    case 5:
      return fmt::format("({}).{}({})", text(depth + 1), one_of(kTextMethods),
                         pick(3) == 0 ? text(depth + 1) : "");
    case 6:
      return fmt::format("({}).replace({}, {})", text(depth + 1), text(depth + 1), text(depth + 1));
    case 7:
      return fmt::format("({}).{}({})", text(depth + 1),
                         one_of(std::array<Words, 4>{"ljust", "rjust", "center", "zfill"}),
                         number(depth + 1));
    case 8:
      return fmt::format("({} | join({}))", list(depth + 1), text(depth + 1));
    case 9:
      return fmt::format("({})[{}:{}:{}]", text(depth + 1), number(3), number(3), number(3));
    case 10:
      return fmt::format("({} | tojson(indent={}, sort_keys={}))", value(depth + 1),
                         pick(2) == 0 ? number(3) : text(3), number(3));
    case 11:
      return fmt::format("(({} * {}) % ({},))", one_of(kPatterns), pick(3) == 0 ? number(3) : "1",
                         value(depth + 1));
    case 12:
      return fmt::format("({} * {}).format({}, a={})", one_of(kPatterns), number(3),
                         value(depth + 1), value(depth + 1));
    default:
      return fmt::format("({} | {}({}))", text(depth + 1),
                         one_of(std::array<Words, 3>{"indent", "truncate", "center"}),
                         number(depth + 1));
  }
}

std::string BombMaker::list(int depth) {
  switch (pick(depth > 2 ? 3 : 11)) {
    case 0:
      return "l";
    case 1:
      return fmt::format("range({})", one_of(kNumbers));
    case 2:
      return "n.l";
    case 3:
      return fmt::format("([{}] * {})", value(depth + 1), number(3));
    case 4:
      return fmt::format("({}).{}({})", text(depth + 1), pick(2) == 0 ? "split" : "rsplit",
                         pick(2) == 0 ? text(depth + 1) : "");
    case 5:
      return fmt::format("({}).splitlines()", text(depth + 1));
    case 6:
      return fmt::format("({} | {})", list(depth + 1), one_of(kListFilters));
    case 7:
      return fmt::format("({})[{}:{}:{}]", list(depth + 1), number(3), number(3), number(3));
    case 8:
      return fmt::format("({} + {})", list(depth + 1), list(depth + 1));
    case 9:
      return fmt::format("({} | {}({}) | list)", list(depth + 1), pick(2) == 0 ? "batch" : "slice",
                         number(3));
    default:
      return fmt::format("({} | list)", text(depth + 1));
  }
}

std::string BombMaker::condition(int depth) {
  switch (pick(5)) {
    case 0:
      return fmt::format("({} in {})", text(depth + 1), pick(2) == 0 ? text(depth + 1) : "l");
    case 1:
      return fmt::format("({} {} {})", text(depth + 1), one_of(kComparisons), text(depth + 1));
    case 2:
      return fmt::format("({} {} {})", list(depth + 1), one_of(kComparisons), list(depth + 1));
    case 3:
      return fmt::format("{{{}: 1, {}: 2}}[{}]", text(depth + 1), value(depth + 1),
                         text(depth + 1));
    default:
      return fmt::format("({} is {})", text(depth + 1),
                         one_of(std::array<Words, 4>{"lower", "upper", "string", "defined"}));
  }
}

std::string BombMaker::value(int depth) {
  switch (pick(16)) {
    case 0:
      return anything(depth + 1);
    case 1:
      return number(depth);
    case 2:
      return condition(depth);
    case 3:
      return fmt::format("({} | {})", list(depth + 1), one_of(kEnds));
    case 4:
    case 5:
      return list(depth);
    default:
      return text(depth);
  }
}

std::string BombMaker::arguments(int depth) {
  constexpr std::array<Words, 12> kNamed{"attribute", "d",     "width",      "indent",
                                         "first",     "count", "start",      "reverse",
                                         "by",        "a",     "separators", "sort_keys"};
  constexpr std::array<Words, 3> kNamesOfFilters{"'map'", "'upper'", "'list'"};
  std::string all;
  bool has_name = false;
  for (size_t i = pick(4); i > 0; --i) {
    if (!all.empty()) all += ", ";
    has_name = has_name || pick(8) == 0;
    if (has_name) all += one_of(kNamed) + "=";
    all += pick(6) == 0 ? one_of(kNamesOfFilters) : value(depth + 1);
  }
  return all;
}

std::string BombMaker::anything(int depth) {
  if (depth > 3) return one_of(std::array<Words, 5>{"messages", "n", "missing", "loop", "f"});
  const std::string of = pick(2) == 0 ? text(depth + 1) : list(depth + 1);
  switch (pick(4)) {
    case 0:
      return fmt::format("({} is {}({}))", of, one_of(kTests), arguments(depth));
    case 1:
      return fmt::format("({}).{}({})", of, one_of(kMethods), arguments(depth));
    default:
      return fmt::format("({} | {}({}))", of, one_of(kFilters), arguments(depth));
  }
}

std::string BombMaker::body(int depth) {
  std::string all;
  for (size_t i = 1 + pick(2); i > 0; --i) all += statement(depth + 1);
  return all;
}

std::string BombMaker::statement(int depth) {
  switch (pick(depth > 3 ? 6 : 15)) {
    case 0:
      return fmt::format("{{{{ {} }}}}", value(1));
    case 1:
      return fmt::format("{{% set n.x = {} %}}", value(1));
    case 2:
      return fmt::format("{{% set x = {} %}}", value(0));
    case 3:
      return fmt::format("{{% set n.x = n.x ~ {} %}}", text(1));
    case 4:
      return fmt::format("{{% set n.l = [n.l, {}] %}}", value(2));
    case 5:
      return fmt::format("{{% if {} %}}-{{% endif %}}", condition(0));
    case 6:
    case 7:
      return fmt::format("{{% for i in range(100000) %}}{}{{% endfor %}}", body(depth));
    case 8:
      return fmt::format("{{% for i in {} if {} %}}{}{{% else %}}-{{% endfor %}}", list(1),
                         condition(2), body(depth));
    case 9:
      return fmt::format("{{% if {} %}}{}{{% else %}}{}{{% endif %}}", condition(1), body(depth),
                         body(depth));
    case 10:
      return fmt::format("{{% macro f(a=1, b={}) %}}{}{{% endmacro %}}{{{{ f({}) }}}}", value(2),
                         body(depth), value(2));
    case 11:
      return fmt::format("{{% filter {} %}}{}{{% endfilter %}}", one_of(kTextFilters), body(depth));
    case 12:
      return fmt::format("{{% set x %}}{}{{% endset %}}{{% with y = x %}}{}{{% endwith %}}",
                         body(depth), body(depth));
    case 13:
      return fmt::format("{{% generation %}}{}{{% endgeneration %}}", body(4));
    default:
      return fmt::format("{{% call(a=1) g({}) %}}{}{{% endcall %}}", value(2), body(depth));
  }
}

std::string BombMaker::next() {
  std::string all =
      "{% macro g(a=1) %}{{ caller(a) }}{% endmacro %}{% set l = range(100000) | list %}";
  all += fmt::format("{{% set s = {} * {} %}}", one_of(kParts), pick(2) == 0 ? "1000" : "1000000");
  all += fmt::format("{{% set n = namespace(x={}, l={}) %}}", text(1), list(1));
  return all + body(0);
}

}  // namespace snug::text::jinja
