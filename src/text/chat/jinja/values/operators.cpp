#include "text/chat/jinja/values/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/chat/jinja/functions/format.h"
#include "text/chat/jinja/values/compare.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/chat/jinja/values/text_builder.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

[[noreturn]] void beyond_64_bits() { fail("an integer is beyond 64 bits"); }

Value whole(std::string_view mark, int64_t left, int64_t right) {
  int64_t result = 0;
  const bool is_beyond = mark == "+"   ? __builtin_add_overflow(left, right, &result)
                         : mark == "-" ? __builtin_sub_overflow(left, right, &result)
                                       : __builtin_mul_overflow(left, right, &result);
  if (is_beyond) beyond_64_bits();
  return Value::integer(result);
}

// As in Python, the quotient is rounded down, and the remainder has the divisor's sign.
Value whole_division(std::string_view mark, int64_t left, int64_t right) {
  if (left == INT64_MIN && right == -1) beyond_64_bits();
  int64_t quotient = left / right;
  int64_t remainder = left % right;
  if (remainder != 0 && (remainder < 0) != (right < 0)) {
    --quotient;
    remainder += right;
  }
  return Value::integer(mark == "//" ? quotient : remainder);
}

Value real_division(std::string_view mark, double left, double right) {
  double remainder = std::fmod(left, right);
  double quotient = (left - remainder) / right;
  if (remainder != 0) {
    if ((right < 0) != (remainder < 0)) {
      remainder += right;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, right);
  }
  if (mark == "%") return Value::real(remainder);
  if (quotient == 0) return Value::real(std::copysign(0.0, left / right));
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return Value::real(floored);
}

Value power(const Value& left, const Value& right) {
  if (!left.is_whole() || !right.is_whole() || right.as_integer() < 0) {
    if (left.as_real() == 0 && right.as_real() < 0) fail("0 cannot be raised to a negative power");
    if (left.as_real() < 0 && right.as_real() != std::floor(right.as_real()))
      fail("complex numbers are not supported");
    const double result = std::pow(left.as_real(), right.as_real());
    if (std::isinf(result) && std::isfinite(left.as_real()) && std::isfinite(right.as_real()))
      fail("the result of a power is too large");
    return Value::real(result);
  }
  const int64_t base = left.as_integer();
  const int64_t exponent = right.as_integer();
  if (exponent == 0 || base == 1) return Value::integer(1);
  if (base == 0) return Value::integer(0);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) beyond_64_bits();
  return Value::integer(result);
}

Value numbers(std::string_view mark, const Value& left, const Value& right) {
  if (mark == "**") return power(left, right);
  const bool divides = mark == "/" || mark == "//" || mark == "%";
  if (divides && right.as_real() == 0) fail("division by zero");
  if (left.is_whole() && right.is_whole() && mark != "/")
    return divides ? whole_division(mark, left.as_integer(), right.as_integer())
                   : whole(mark, left.as_integer(), right.as_integer());
  const double a = left.as_real();
  const double b = right.as_real();
  if (mark == "+") return Value::real(a + b);
  if (mark == "-") return Value::real(a - b);
  if (mark == "*") return Value::real(a * b);
  return mark == "/" ? Value::real(a / b) : real_division(mark, a, b);
}

// If either text is safe, the result is safe, and the other text is escaped.
Value joined_texts(const Value& left, const Value& right) {
  const bool is_safe = left.is_safe() || right.is_safe();
  TextBuilder out(left.as_text().size() + right.as_text().size());
  for (const Value* value : {&left, &right}) {
    if (is_safe && !value->is_safe())
      out.add(escape_html(value->as_text()));
    else
      out.add(value->as_text());
  }
  return out.take_value(is_safe);
}

Value joined_lists(const Value& left, const Value& right) {
  const size_t size = left.items().size() + right.items().size();
  charge_steps(static_cast<int64_t>(size));
  List items;
  items.reserve(size);
  for (const Value* value : {&left, &right})
    items.insert(items.end(), value->items().begin(), value->items().end());
  return Value::list(std::move(items), left.kind());
}

Value repeated(const Value& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (value.is(Kind::text)) {
    TextBuilder out;
    out.add_times(value.as_text(), times);
    return out.take_value(value.is_safe());
  }
  const auto size = static_cast<int64_t>(value.items().size());
  // `times` is limited so that the product cannot overflow.
  charge_steps(size == 0 ? 0 : times);
  charge_steps(size * std::min(times, kMaxSteps));
  List items;
  items.reserve(static_cast<size_t>(size == 0 ? 0 : size * times));
  for (int64_t i = 0; i < times && size > 0; ++i)
    items.insert(items.end(), value.items().begin(), value.items().end());
  return Value::list(std::move(items), value.kind());
}

bool can_repeat(const Value& value) {
  return value.is(Kind::text) || value.is(Kind::list) || value.is(Kind::tuple);
}

// The index that a slice's bound stands for, limited to [least, most].
int64_t bound(const Value& value, int64_t length, int64_t otherwise, int64_t least, int64_t most) {
  if (value.is(Kind::undefined) || value.is(Kind::none)) return otherwise;
  if (!value.is_whole())
    fail(fmt::format("a slice has integer bounds, not a {}", value.type_name()));
  const int64_t index = value.as_integer();
  return std::clamp(index < 0 ? index + length : index, least, most);
}

}  // namespace

Value binary(Runtime& runtime, std::string_view mark, const Value& left, const Value& right) {
  // The % operator of a text handles undefined values itself.
  if (mark == "%" && left.is(Kind::text)) return format_percent(runtime, left, right);
  for (const Value* value : {&left, &right})
    if (value->is(Kind::undefined)) fail(value->undefined_message());
  if (left.is_number() && right.is_number()) return numbers(mark, left, right);
  if (mark == "+") {
    if (left.is(Kind::text) && right.is(Kind::text)) return joined_texts(left, right);
    if (left.kind() == right.kind() && (left.is(Kind::list) || left.is(Kind::tuple)))
      return joined_lists(left, right);
  }
  if (mark == "*" && can_repeat(left) && right.is_whole())
    return repeated(left, right.as_integer());
  if (mark == "*" && can_repeat(right) && left.is_whole())
    return repeated(right, left.as_integer());
  fail(fmt::format("'{}' is not supported between a {} and a {}", mark, left.type_name(),
                   right.type_name()));
}

Value negative(const Value& value) {
  if (value.is(Kind::real)) return Value::real(-value.as_real());
  return numbers("-", Value::integer(0), positive(value));
}

Value positive(const Value& value) {
  if (value.is(Kind::undefined)) fail(value.undefined_message());
  if (!value.is_number()) fail(fmt::format("a {} has no sign", value.type_name()));
  return value.is(Kind::real) ? value : Value::integer(value.as_integer());
}

bool compare(std::string_view mark, const Value& left, const Value& right) {
  if (mark == "==") return equal(left, right);
  if (mark == "!=") return !equal(left, right);
  if (mark == "<") return less(left, right);
  if (mark == ">") return less(right, left);
  if (mark == "<=") return less(left, right) || equal(left, right);
  if (mark == ">=") return less(right, left) || equal(left, right);
  return contains(right, left) == (mark == "in");
}

Value slice(const Value& value, const Value& begin, const Value& end, const Value& step) {
  if (value.is(Kind::undefined)) fail(value.undefined_message());
  if (!value.is(Kind::text) && !value.is(Kind::list) && !value.is(Kind::tuple))
    fail(fmt::format("a {} has no slices", value.type_name()));
  const int64_t by = bound(step, 0, 1, INT64_MIN, INT64_MAX);
  if (by == 0) fail("the step of a slice is 0");
  const bool is_text = value.is(Kind::text);
  const int64_t size =
      is_text ? length(value.as_text()) : static_cast<int64_t>(value.items().size());
  const int64_t first =
      by > 0 ? bound(begin, size, 0, 0, size) : bound(begin, size, size - 1, -1, size - 1);
  const int64_t last =
      by > 0 ? bound(end, size, size, 0, size) : bound(end, size, -1, -1, size - 1);
  if (is_text && by == 1) {
    const std::string& text = value.as_text();
    const size_t from = byte_of(text, first);
    const size_t to = byte_of(text, std::max(first, last));
    return Value::text(text.substr(from, to - from), value.is_safe());
  }
  const Elements all = elements(value);
  List picked;
  for (int64_t i = first; by > 0 ? i < last : i > last;) {
    picked.push_back(all[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (!is_text) return Value::list(std::move(picked), value.kind());
  TextBuilder text;
  for (const Value& character : picked) text.add(character.as_text());
  return text.take_value(value.is_safe());
}

}  // namespace snug::text::jinja
