#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/values/operators.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// Python's syntax of int(text) and float(text): surrounding spaces, a sign, and single underscores
// between digits are allowed.
std::optional<std::string> plain_number(std::string_view text) {
  charge_steps(text.size(), kWalkedPerStep);
  const std::string_view inner = strip(text, Side::both);
  std::string plain;
  for (size_t i = 0; i < inner.size(); ++i) {
    const auto digit_at = [&](size_t at) {
      return at < inner.size() && inner[at] >= '0' && inner[at] <= '9';
    };
    if (static_cast<unsigned char>(inner[i]) >= 0x80)
      fail("numbers in digits beyond ASCII are not supported");
    if (inner[i] != '_') {
      plain += inner[i];
    } else if (i == 0 || !digit_at(i - 1) || !digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  if (plain.starts_with('+')) {
    plain.erase(0, 1);
    if (plain.starts_with('-')) return std::nullopt;
  }
  return plain;
}

std::optional<int64_t> read_integer(std::string_view text) {
  const auto plain = plain_number(text);
  if (!plain) return std::nullopt;
  int64_t value = 0;
  const char* end = plain->data() + plain->size();
  const auto result = std::from_chars(plain->data(), end, value);
  if (result.ptr != end || plain->empty()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) fail("an integer is beyond 64 bits");
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> read_real(std::string_view text) {
  const auto plain = plain_number(text);
  if (!plain) return std::nullopt;
  double value = 0;
  const char* end = plain->data() + plain->size();
  const auto result = std::from_chars(plain->data(), end, value);
  if (result.ec == std::errc::result_out_of_range) fail("a number is out of range");
  const bool is_read = result.ec == std::errc() && result.ptr == end && !plain->empty();
  return is_read ? std::optional(value) : std::nullopt;
}

Value truncated(double value, const Value& otherwise) {
  if (!std::isfinite(value)) return otherwise;
  if (std::fabs(value) >= 9.2e18) fail("an integer is beyond 64 bits");
  return Value::integer(static_cast<int64_t>(value));
}

Value to_integer(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("int", arguments, {"default", "base"});
  if (parameters.integer(1, 10) != 10) fail("'int' of another base than 10 is not supported");
  const Value otherwise = parameters.has(0) ? parameters[0] : Value::integer(0);
  if (input.is(Kind::undefined)) fail(input.undefined_message());
  if (input.is_whole()) return Value::integer(input.as_integer());
  if (input.is(Kind::real)) return truncated(input.as_real(), otherwise);
  if (!input.is(Kind::text)) return otherwise;
  if (const auto whole = read_integer(input.as_text())) return Value::integer(*whole);
  const auto real = read_real(input.as_text());
  return real ? truncated(*real, otherwise) : otherwise;
}

Value to_real(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("float", arguments, {"default"});
  if (input.is(Kind::undefined)) fail(input.undefined_message());
  if (input.is_number()) return Value::real(input.as_real());
  if (input.is(Kind::text))
    if (const auto real = read_real(input.as_text())) return Value::real(*real);
  return parameters.has(0) ? parameters[0] : Value::real(0);
}

Value absolute(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("abs", arguments, {});
  const Value number = positive(input);
  const bool is_negative =
      number.is(Kind::real) ? std::signbit(number.as_real()) : number.as_integer() < 0;
  return is_negative ? negative(number) : number;
}

// Python's round: the decimal nearest to the number's exact value, or the even one of two equally
// near ones.
double rounded(double value, int64_t digits) {
  charge_steps(32 + digits);
  if (!std::isfinite(value)) return value;
  return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
}

Value round_number(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("round", arguments, {"precision", "method"});
  const std::string method = parameters.has(1) ? parameters.text(1) : "common";
  const int64_t digits = parameters.integer(0, 0);
  if (digits < 0 || digits > 300) fail("'round' to this precision is not supported");
  if (method != "common" && method != "ceil" && method != "floor")
    fail("'round' knows the methods common, ceil and floor");
  const Value number = positive(input);
  if (method == "common")
    return number.is(Kind::real) ? Value::real(rounded(number.as_real(), digits)) : number;
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = number.as_real() * scale;
  if (!std::isfinite(scaled)) fail("'round' of a number that is too large");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

constexpr std::array<Filter, 4> kNumberFilters{{
    {"abs", absolute},
    {"float", to_real},
    {"int", to_integer},
    {"round", round_number},
}};

}  // namespace

std::span<const Filter> number_filters() { return kNumberFilters; }

}  // namespace snug::text::jinja
