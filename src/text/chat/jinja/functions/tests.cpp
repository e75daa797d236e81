#include "text/chat/jinja/functions/tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/values/compare.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/objects.h"
#include "text/chat/jinja/values/operators.h"
#include "text/chat/jinja/values/print.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// A test without arguments.
template <bool (*Holds)(const Value&)>
bool plain(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("a test", arguments, {});
  return Holds(input);
}

bool is_defined(const Value& input) { return !input.is(Kind::undefined); }
bool is_undefined(const Value& input) { return input.is(Kind::undefined); }
bool is_none(const Value& input) { return input.is(Kind::none); }
bool is_boolean(const Value& input) { return input.is(Kind::boolean); }
bool is_true(const Value& input) { return input.is(Kind::boolean) && input.as_boolean(); }
bool is_false(const Value& input) { return input.is(Kind::boolean) && !input.as_boolean(); }
bool is_integer(const Value& input) { return input.is(Kind::integer); }
bool is_float(const Value& input) { return input.is(Kind::real); }
bool is_number(const Value& input) { return input.is_number(); }
bool is_string(const Value& input) { return input.is(Kind::text); }
bool is_mapping(const Value& input) { return input.is(Kind::dict); }
bool is_escaped(const Value& input) { return input.is_safe(); }
// A value with a length and items. Views have no items; an undefined value raises only when it is
// used.
bool is_sequence(const Value& input) {
  return input.is(Kind::text) || input.is(Kind::dict) || input.is(Kind::undefined) ||
         (input.is_sequence() && !input.is(Kind::view));
}
bool is_callable(const Value& input) {
  return input.is(Kind::undefined) || (input.is(Kind::object) && generator_of(input) == nullptr &&
                                       object_as<Namespace>(input) == nullptr);
}

int64_t remainder(Runtime& runtime, const Value& input, const Value& by) {
  const Value result = binary(runtime, "%", input, by);
  if (!result.is_number()) fail("this test takes numbers");
  if (result.is(Kind::real)) return result.as_real() == 0 ? 0 : result.as_real() == 1 ? 1 : 2;
  return result.as_integer();
}

template <int kRemainder>
bool leaves(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("a test", arguments, {});
  return remainder(runtime, input, Value::integer(2)) == kRemainder;
}

bool is_divisible(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("divisibleby", arguments, {"num"}, 1);
  return remainder(runtime, input, parameters[0]) == 0;
}

template <bool (*Changes)(char)>
bool has_case(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("a test of case", arguments, {});
  const Value text = printed(input);
  charge_steps(text.as_text().size(), kWalkedPerStep);
  bool has = false;
  for (const char c : text.as_text()) {
    if (static_cast<unsigned char>(c) >= 0x80)
      fail("a test of the case of characters beyond ASCII is not supported");
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter && !Changes(c)) return false;
    has = has || is_letter;
  }
  return has;
}
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

struct Mark {
  static constexpr std::string_view kAll[] = {"==", "!=", "<", "<=", ">", ">=", "in"};
};

template <int kMark>
bool compares(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("a comparison", arguments, {"other"}, 1);
  return compare(Mark::kAll[kMark], input, parameters[0]);
}

// Identity. For numbers and texts, the result depends on Python's caches, which are not imitated.
bool is_same(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("sameas", arguments, {"other"}, 1);
  const Value& other = parameters[0];
  if (input.kind() != other.kind()) return false;
  if (input.is(Kind::none)) return true;
  if (input.is(Kind::boolean)) return input.as_boolean() == other.as_boolean();
  if (input.is(Kind::object)) return input.as_object() == other.as_object();
  fail(fmt::format("the test 'sameas' of a {} is not supported", input.type_name()));
}

// These tests look their input up in a table, for which it must be hashable in Python.
void check_hashable(const Value& input) {
  Dict table;
  table.set(input, Value::none());
}

bool is_filter(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("filter", arguments, {});
  check_hashable(input);
  return input.is(Kind::text) && find_filter(input.as_text()) != nullptr;
}

bool is_test(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("test", arguments, {});
  check_hashable(input);
  return input.is(Kind::text) && find_test(input.as_text()) != nullptr;
}

constexpr std::array<Test, 39> kTests{{
    {"!=", compares<1>},
    {"<", compares<2>},
    {"<=", compares<3>},
    {"==", compares<0>},
    {">", compares<4>},
    {">=", compares<5>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", is_divisible},
    {"eq", compares<0>},
    {"equalto", compares<0>},
    {"escaped", plain<is_escaped>},
    {"even", leaves<0>},
    {"false", plain<is_false>},
    {"filter", is_filter},
    {"float", plain<is_float>},
    {"ge", compares<5>},
    {"greaterthan", compares<4>},
    {"gt", compares<4>},
    {"in", compares<6>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compares<3>},
    {"lessthan", compares<2>},
    {"lower", has_case<is_small>},
    {"lt", compares<2>},
    {"mapping", plain<is_mapping>},
    {"ne", compares<1>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", leaves<1>},
    {"sameas", is_same},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", is_test},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", has_case<is_capital>},
}};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* const at = std::find_if(kTests.begin(), kTests.end(),
                                      [&](const Test& test) { return test.name == name; });
  return at == kTests.end() ? nullptr : at;
}

}  // namespace snug::text::jinja
