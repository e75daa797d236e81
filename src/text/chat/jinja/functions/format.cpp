#include "text/chat/jinja/functions/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>

#include "text/chat/jinja/values/attributes.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/print.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

constexpr int64_t kMaxWidth = 1'000'000;

// The format specification of a field, without its type.
struct Spec {
  char32_t fill = ' ';
  char align = 0;  // <, >, ^, = or none
  char sign = '-';
  bool alternate = false;
  bool groups = false;  // digits in groups of thousands
  int64_t width = 0;
  std::optional<int64_t> precision{};
  char type = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char take() {
    if (at_end()) fail("a format ends in the middle of a field");
    return text_[at_++];
  }
  bool skip(char c) {
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  std::string_view up_to(std::string_view ends) {
    const size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    const std::string_view part = text_.substr(at_, end - at_);
    at_ = end;
    return part;
  }
  std::optional<int64_t> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (take() - '0');
      if (value > kMaxWidth) fail("a format has a number that is too large");
    }
    return value;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

std::string grouped(const std::string& digits) {
  const size_t end = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(end);
}

// The digits of a number's absolute value.
std::string real_digits(double value, char type, int64_t precision) {
  if (std::isinf(value)) return std::isupper(type) != 0 ? "INF" : "inf";
  if (std::isnan(value)) return std::isupper(type) != 0 ? "NAN" : "nan";
  if (precision > 1000) fail("a format has a precision that is too large");
  charge_steps(32 + precision);
  std::array<char, 1400> buffer{};
  const std::array<char, 6> pattern{'%', '.', '*', type, '\0'};
  const int size = std::snprintf(buffer.data(), buffer.size(), pattern.data(),
                                 static_cast<int>(precision), value);
  return {buffer.data(), static_cast<size_t>(size)};
}

std::string whole_digits(uint64_t magnitude, char type) {
  if (type == 'x') return fmt::format("{:x}", magnitude);
  if (type == 'X') return fmt::format("{:X}", magnitude);
  if (type == 'o') return fmt::format("{:o}", magnitude);
  return std::to_string(magnitude);
}

std::string padded(const std::string& sign, std::string_view digits, const Spec& spec, char align) {
  if (align == '=') {
    const auto rest = spec.width - static_cast<int64_t>(sign.size());
    return sign + fill(digits, rest, spec.fill, Side::right);
  }
  // When centring, str.format puts the odd fill character on the right.
  if (sign.empty() && align != '^')
    return fill(digits, spec.width, spec.fill, align == '<' ? Side::left : Side::right);
  const std::string all = fmt::format("{}{}", sign, digits);
  if (align != '^')
    return fill(all, spec.width, spec.fill, align == '<' ? Side::left : Side::right);
  const int64_t missing = std::max<int64_t>(spec.width - length(all), 0);
  const std::string left = fill(all, length(all) + missing / 2, spec.fill, Side::right);
  return fill(left, spec.width, spec.fill, Side::left);
}

std::string formatted_number(const Value& value, const Spec& spec, char default_align) {
  const bool is_whole = std::string_view("dxXo").find(spec.type) != std::string_view::npos;
  std::string digits;
  bool is_negative = false;
  if (is_whole) {
    const int64_t number = value.as_integer();
    is_negative = number < 0;
    digits = whole_digits(
        is_negative ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number),
        spec.type);
  } else {
    double number = value.as_real();
    is_negative = std::signbit(number) && !std::isnan(number);
    number = std::fabs(number);
    digits = spec.type == '%'
                 ? fmt::format("{}%", real_digits(number * 100, 'f', spec.precision.value_or(6)))
                 : real_digits(number, spec.type, spec.precision.value_or(6));
  }
  if (spec.groups) digits = grouped(digits);
  const std::string sign = is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  return padded(sign, digits, spec, spec.align != 0 ? spec.align : default_align);
}

std::string formatted_text(std::string_view text, const Spec& spec, char default_align) {
  if (spec.precision) text = text.substr(0, byte_of(text, *spec.precision));
  return padded("", text, spec, spec.align != 0 ? spec.align : default_align);
}

// The flags, width and precision of a % field; its type is read afterwards.
Spec percent_spec(Reader& reader) {
  Spec spec;
  spec.align = '>';
  for (bool more = true; more;) {
    more = true;
    if (reader.skip('-')) {
      spec.align = '<';
    } else if (reader.skip('+')) {
      spec.sign = '+';
    } else if (reader.skip(' ')) {
      spec.sign = spec.sign == '+' ? '+' : ' ';
    } else if (reader.skip('0')) {
      spec.fill = '0';
    } else {
      more = false;
    }
  }
  if (reader.peek() == '*' || reader.peek() == '#')
    fail(fmt::format("'{}' in a format is not supported", reader.peek()));
  spec.width = reader.number().value_or(0);
  if (reader.skip('.')) spec.precision = reader.number().value_or(0);
  spec.type = reader.take();
  if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
  return spec;
}

std::string percent_field(const Value& value, Spec spec) {
  if (spec.type == 's' || spec.type == 'r' || spec.type == 'c') {
    spec.fill = ' ';
    if (spec.type == 'c' && (!value.is(Kind::text) || length(value.as_text()) != 1))
      fail("%c takes one character");
    if (spec.type == 'r') return formatted_text(print_quoted(value), spec, '>');
    return formatted_text(printed(value).as_text(), spec, '>');
  }
  if (std::string_view("dxXofFeEgG").find(spec.type) == std::string_view::npos)
    fail(fmt::format("the format '%{}' is not supported", spec.type));
  if (!value.is_number())
    fail(fmt::format("%{} takes a number, not a {}", spec.type, value.type_name()));
  Value number = value;
  if (spec.type == 'd' && value.is(Kind::real)) {
    if (!(std::fabs(value.as_real()) < 9e18)) fail("%d takes a number of at most 64 bits");
    number = Value::integer(static_cast<int64_t>(value.as_real()));
  } else if (spec.type != 'd' && value.is(Kind::real) &&
             std::string_view("xXo").find(spec.type) != std::string_view::npos) {
    fail(fmt::format("%{} takes an integer", spec.type));
  }
  if (spec.precision && std::string_view("dxXo").find(spec.type) != std::string_view::npos)
    fail(fmt::format("a precision of %{} is not supported", spec.type));
  if (spec.fill == '0') {
    spec.align = spec.align == '<' ? '<' : '=';
    if (spec.align == '<') spec.fill = ' ';
  }
  return formatted_number(number, spec, '>');
}

Spec brace_spec(std::string_view text) {
  Spec spec;
  constexpr std::string_view kAligns = "<>^=";
  if (!text.empty()) {
    const CodePoint first = code_point_at(text, 0);
    if (first.size < text.size() && kAligns.find(text[first.size]) != std::string_view::npos) {
      spec.fill = first.value;
      spec.align = text[first.size];
      text.remove_prefix(first.size + 1);
    } else if (kAligns.find(text[0]) != std::string_view::npos) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  Reader reader(text);
  if (reader.peek() == '+' || reader.peek() == '-' || reader.peek() == ' ')
    spec.sign = reader.at_end() ? '-' : reader.take();
  if (reader.skip('0') && spec.align == 0) {
    spec.fill = '0';
    spec.align = '=';
  }
  spec.width = reader.number().value_or(0);
  spec.groups = reader.skip(',');
  if (reader.skip('.')) {
    spec.precision = reader.number();
    if (!spec.precision) fail("a format has no number after its point");
  }
  if (!reader.at_end()) spec.type = reader.take();
  if (!reader.at_end()) fail(fmt::format("the format '{}' is not supported", text));
  return spec;
}

std::string brace_field(const Value& value, std::string_view written) {
  Spec spec = brace_spec(written);
  if (value.is(Kind::undefined)) {
    if (!written.empty()) fail("an undefined value is formatted");
    return "";
  }
  if (value.is(Kind::text)) {
    if (spec.type != 0 && spec.type != 's')
      fail(fmt::format("the format '{}' is not one of texts", spec.type));
    if (spec.align == '=' || spec.sign != '-' || spec.groups)
      fail("a text is formatted as a number");
    return formatted_text(value.as_text(), spec, '<');
  }
  if (written.empty()) return print(value);
  if (!value.is_number() || value.is(Kind::boolean))
    fail(fmt::format("a {} with a format is not supported", value.type_name()));
  if (spec.type == 0 && value.is(Kind::real)) fail("a number without a type is not supported");
  if (spec.type == 0) spec.type = 'd';
  constexpr std::string_view kReal = "fFeEgG%";
  const bool is_real = kReal.find(spec.type) != std::string_view::npos;
  if (!is_real && std::string_view("dxX").find(spec.type) == std::string_view::npos)
    fail(fmt::format("the format '{}' is not supported", spec.type));
  if (!is_real && (value.is(Kind::real) || spec.precision))
    fail(fmt::format("the format '{}' does not take this number", spec.type));
  return formatted_number(value, spec, '>');
}

// The value that a field names: "", "0", "name", "name.attribute", "name[key]".
Value named_value(Runtime& runtime, std::string_view name, const Arguments& arguments,
                  size_t& next) {
  Reader reader(name);
  const std::string first(reader.up_to(".["));
  Reader digits(first);
  const auto index = first.empty() ? std::optional(static_cast<int64_t>(next++)) : digits.number();
  Value value;
  if (index && digits.at_end()) {
    if (static_cast<size_t>(*index) >= arguments.positional.size())
      fail("a format names more values than it is given");
    value = arguments.positional[static_cast<size_t>(*index)];
  } else {
    charge_steps(static_cast<int64_t>(arguments.named.size()));
    const auto at = std::find_if(arguments.named.begin(), arguments.named.end(),
                                 [&](const auto& entry) { return entry.first == first; });
    if (at == arguments.named.end())
      fail(fmt::format("a format names '{}', which is not given", first));
    value = at->second;
  }
  while (!reader.at_end()) {
    if (reader.take() == '.') {
      value = attribute_of(runtime, value, std::string(reader.up_to(".[")));
    } else {
      const std::string key(reader.up_to("]"));
      reader.take();
      Reader number(key);
      const auto at = number.number();
      value =
          item_of(runtime, value, at && number.at_end() ? Value::integer(*at) : Value::text(key));
    }
  }
  return value;
}

}  // namespace

Value format_percent(Runtime& runtime, const Value& pattern, const Value& values) {
  if (pattern.is_safe()) fail("'%' of safe text is not supported");
  const Elements given = values.is(Kind::tuple) ? Elements(values) : Elements(List{values});
  Reader reader(pattern.as_text());
  charge_steps(pattern.as_text().size(), kWalkedPerStep);
  TextBuilder out;
  size_t next = 0;
  while (!reader.at_end()) {
    out.add(reader.up_to("%"));
    if (!reader.skip('%')) break;
    if (reader.skip('%')) {
      out.add('%');
      continue;
    }
    charge_steps(1);
    const Value* value = nullptr;
    Value named;
    if (reader.skip('(')) {
      named = item_of(runtime, values, Value::text(std::string(reader.up_to(")"))));
      if (named.is(Kind::undefined)) fail(named.undefined_message());
      reader.take();
      value = &named;
    }
    const Spec spec = percent_spec(reader);
    if (value == nullptr) {
      if (next == given.size()) fail("a format names more values than it is given");
      value = &given[next++];
    } else {
      next = given.size();
    }
    out.add(percent_field(*value, spec));
  }
  if (next < given.size() && !values.is(Kind::dict))
    fail("a format is given more values than it names");
  return out.take_value();
}

Value format_braces(Runtime& runtime, const std::string& pattern, const Arguments& arguments) {
  Reader reader(pattern);
  charge_steps(pattern.size(), kWalkedPerStep);
  TextBuilder out;
  size_t next = 0;
  while (!reader.at_end()) {
    out.add(reader.up_to("{}"));
    if (reader.at_end()) break;
    const char brace = reader.take();
    if (reader.skip(brace)) {
      out.add(brace);
      continue;
    }
    charge_steps(1);
    if (brace == '}') fail("a format has a '}' without its '{'");
    const std::string name(reader.up_to("{}:!"));
    char conversion = 0;
    if (reader.skip('!')) conversion = reader.take();
    std::string_view spec;
    if (reader.skip(':')) spec = reader.up_to("{}");
    if (!reader.skip('}')) fail("fields within fields of a format are not supported");
    Value value = named_value(runtime, name, arguments, next);
    if (conversion == 's') value = printed(value);
    if (conversion == 'r') value = Value::text(print_quoted(value));
    if (conversion != 0 && conversion != 's' && conversion != 'r')
      fail(fmt::format("the conversion '!{}' is not supported", conversion));
    out.add(brace_field(value, spec));
  }
  return out.take_value();
}

}  // namespace snug::text::jinja
