#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "text/chat/jinja/functions/format.h"
#include "text/chat/jinja/functions/methods.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/part_search.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/chat/jinja/values/text_builder.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// A call of a method of `self`, with what all methods need.
struct Call {
  Runtime& runtime;
  const Value& self;
  std::string_view name;
  const Arguments& arguments;

  const std::string& text() const { return self.as_text(); }
  Value result(std::string_view value) const {
    return Value::text(std::string(value), self.is_safe());
  }
  // An argument that is inserted into safe text is escaped.
  std::string inserted(const Value& value) const {
    if (!value.is(Kind::text))
      fail(fmt::format("'{}' expects a text, not a {}", name, value.type_name()));
    const bool escapes = self.is_safe() && !value.is_safe();
    return escapes ? escape_html(value.as_text()) : value.as_text();
  }
  Value list(const Parts& parts, Kind kind = Kind::list) const {
    charge_steps(static_cast<int64_t>(parts.size()));
    List items;
    items.reserve(parts.size());
    for (const std::string_view part : parts) items.push_back(result(part));
    return Value::list(std::move(items), kind);
  }
};

Value change_case(const Call& call) {
  const Parameters none(call.name, call.arguments, {});
  if (call.name == "upper") return call.result(upper(call.text()));
  if (call.name == "lower") return call.result(lower(call.text()));
  if (call.name == "title") return call.result(title(call.text()));
  if (call.name == "capitalize") return call.result(capitalize(call.text()));
  return call.result(swap_case(call.text()));
}

Value strip_ends(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"chars"});
  const Side side = call.name == "lstrip"   ? Side::left
                    : call.name == "rstrip" ? Side::right
                                            : Side::both;
  std::optional<std::string_view> set;
  if (parameters.has(0) && !parameters[0].is(Kind::none)) set = parameters.text(0);
  return call.result(strip(call.text(), side, set));
}

Value split_text(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"sep", "maxsplit"});
  std::optional<std::string_view> separator;
  if (parameters.has(0) && !parameters[0].is(Kind::none)) separator = parameters.text(0);
  return call.list(split(call.text(), separator, parameters.integer(1, -1), call.name == "rsplit"));
}

Value split_into_lines(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"keepends"});
  return call.list(split_lines(call.text(), parameters.truth(0, false)));
}

Value replace_part(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"old", "new", "count"}, 2);
  const std::string with = call.inserted(parameters[1]);
  return call.result(replace(call.text(), parameters.text(0), with, parameters.integer(2, -1)));
}

Value join_items(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"iterable"}, 1);
  TextBuilder out;
  bool is_first = true;
  for (const Value& item : elements(parameters[0])) {
    if (!is_first) out.add(call.text());
    is_first = false;
    out.add(call.inserted(item));
  }
  return out.take_value(call.self.is_safe());
}

// The range of characters that the arguments `first` and `first` + 1 give.
std::pair<size_t, size_t> window(const Call& call, const Parameters& parameters, size_t first) {
  const int64_t size = length(call.text());
  const auto at = [&](size_t index, int64_t otherwise) {
    if (!parameters.has(index) || parameters[index].is(Kind::none)) return otherwise;
    const int64_t value = parameters.integer(index, 0);
    return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
  };
  const int64_t begin = at(first, 0);
  const int64_t end = std::max(begin, at(first + 1, size));
  return {byte_of(call.text(), begin), byte_of(call.text(), end)};
}

Value has_end(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"affix", "start", "end"}, 1);
  const auto [begin, end] = window(call, parameters, 1);
  const auto part = std::string_view(call.text()).substr(begin, end - begin);
  const auto fits = [&](const Value& affix) {
    if (!affix.is(Kind::text))
      fail(fmt::format("'{}' expects a text or a tuple of texts, not a {}", call.name,
                       affix.type_name()));
    charge_steps(1 + static_cast<int64_t>(affix.as_text().size() / kComparedPerStep));
    return call.name == "startswith" ? part.starts_with(affix.as_text())
                                     : part.ends_with(affix.as_text());
  };
  const Value& affix = parameters[0];
  if (!affix.is(Kind::tuple)) return Value::boolean(fits(affix));
  return Value::boolean(std::any_of(affix.items().begin(), affix.items().end(), fits));
}

Value find_part(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"sub", "start", "end"}, 1);
  const auto [begin, end] = window(call, parameters, 1);
  const auto part = std::string_view(call.text()).substr(begin, end - begin);
  if (call.name == "count") return Value::integer(count(part, parameters.text(0)));
  const bool is_last = call.name.starts_with('r');
  const size_t at = PartSearch(part, parameters.text(0), is_last).next();
  if (at != std::string_view::npos)
    return Value::integer(length(std::string_view(call.text()).substr(0, begin + at)));
  if (call.name.ends_with("index")) fail(fmt::format("'{}' does not find its text", call.name));
  return Value::integer(-1);
}

Value partition(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"sep"}, 1);
  const std::string_view text = call.text();
  const std::string& separator = parameters.text(0);
  if (separator.empty()) fail(fmt::format("'{}' has an empty separator", call.name));
  const bool is_last = call.name == "rpartition";
  const size_t at = PartSearch(text, separator, is_last).next();
  if (at == std::string::npos)
    return is_last ? call.list({"", "", text}, Kind::tuple)
                   : call.list({text, "", ""}, Kind::tuple);
  return call.list({text.substr(0, at), separator, text.substr(at + separator.size())},
                   Kind::tuple);
}

Value remove_affix(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"affix"}, 1);
  const std::string_view text = call.text();
  const std::string& affix = parameters.text(0);
  if (call.name == "removeprefix")
    return call.result(text.starts_with(affix) ? text.substr(affix.size()) : text);
  const bool has = text.ends_with(affix);
  return call.result(has ? text.substr(0, text.size() - affix.size()) : text);
}

Value fill_up(const Call& call) {
  const Parameters parameters(call.name, call.arguments, {"width", "fillchar"}, 1);
  const int64_t width = parameters.integer(0, 0);
  if (call.name == "zfill") {
    const bool has_sign = call.text().starts_with('-') || call.text().starts_with('+');
    const size_t signs = has_sign ? 1 : 0;
    const std::string_view text = call.text();
    const int64_t digits = std::max<int64_t>(width, 1) - static_cast<int64_t>(signs);
    return call.result(std::string(text.substr(0, signs)) +
                       fill(text.substr(signs), digits, '0', Side::right));
  }
  const std::string with = parameters.has(1) ? parameters.text(1) : " ";
  if (length(with) != 1) fail(fmt::format("'{}' fills with one character", call.name));
  const Side side = call.name == "ljust"   ? Side::left
                    : call.name == "rjust" ? Side::right
                                           : Side::both;
  return call.result(fill(call.text(), width, code_point_at(with, 0).value, side));
}

// Whether the text is not empty and all its characters satisfy the predicate.
Value is_all(const Call& call) {
  const Parameters none(call.name, call.arguments, {});
  charge_steps(call.text().size(), kWalkedPerStep);
  bool all = !call.text().empty();
  for (size_t i = 0; i < call.text().size() && all;) {
    const CodePoint c = code_point_at(call.text(), i);
    const auto kind = utf8proc_category(static_cast<utf8proc_int32_t>(c.value));
    const bool is_letter = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
    const bool is_decimal = kind == UTF8PROC_CATEGORY_ND;
    if (!is_decimal && call.name != "isalpha" && call.name != "isspace" && c.value >= 0x80 &&
        !is_letter)
      fail(fmt::format("'{}' of characters beyond ASCII is not supported", call.name));
    all = call.name == "isspace"   ? is_python_space(c.value)
          : call.name == "isalpha" ? is_letter
          : call.name == "isalnum" ? is_letter || is_decimal
                                   : is_decimal;
    i += c.size;
  }
  return Value::boolean(all);
}

Value is_ascii(const Call& call) {
  const Parameters none(call.name, call.arguments, {});
  return Value::boolean(std::all_of(call.text().begin(), call.text().end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

// islower and isupper: whether the text has characters with case, and all of these have the wanted
// one.
Value has_case(const Call& call) {
  const Parameters none(call.name, call.arguments, {});
  charge_steps(call.text().size(), kWalkedPerStep);
  bool has = false;
  for (size_t i = 0; i < call.text().size();) {
    const CodePoint c = code_point_at(call.text(), i);
    const auto kind = utf8proc_category(static_cast<utf8proc_int32_t>(c.value));
    const bool is_upper = kind == UTF8PROC_CATEGORY_LU;
    const bool is_lower = kind == UTF8PROC_CATEGORY_LL;
    if (kind == UTF8PROC_CATEGORY_LT || (call.name == "isupper" ? is_lower : is_upper))
      return Value::boolean(false);
    has = has || is_upper || is_lower;
    i += c.size;
  }
  return Value::boolean(has);
}

Value format_text(const Call& call) {
  if (call.self.is_safe()) fail("the method 'format' of safe text is not supported");
  return format_braces(call.runtime, call.text(), call.arguments);
}

struct TextMethod {
  std::string_view name;
  Value (*call)(const Call&);  // null: not supported
};

constexpr std::array<TextMethod, 47> kMethods{{
    {"capitalize", change_case},
    {"casefold", nullptr},
    {"center", fill_up},
    {"count", find_part},
    {"encode", nullptr},
    {"endswith", has_end},
    {"expandtabs", nullptr},
    {"find", find_part},
    {"format", format_text},
    {"format_map", nullptr},
    {"index", find_part},
    {"isalnum", is_all},
    {"isalpha", is_all},
    {"isascii", is_ascii},
    {"isdecimal", is_all},
    {"isdigit", is_all},
    {"isidentifier", nullptr},
    {"islower", has_case},
    {"isnumeric", is_all},
    {"isprintable", nullptr},
    {"isspace", is_all},
    {"istitle", nullptr},
    {"isupper", has_case},
    {"join", join_items},
    {"ljust", fill_up},
    {"lower", change_case},
    {"lstrip", strip_ends},
    {"maketrans", nullptr},
    {"partition", partition},
    {"removeprefix", remove_affix},
    {"removesuffix", remove_affix},
    {"replace", replace_part},
    {"rfind", find_part},
    {"rindex", find_part},
    {"rjust", fill_up},
    {"rpartition", partition},
    {"rsplit", split_text},
    {"rstrip", strip_ends},
    {"split", split_text},
    {"splitlines", split_into_lines},
    {"startswith", has_end},
    {"strip", strip_ends},
    {"swapcase", change_case},
    {"title", change_case},
    {"translate", nullptr},
    {"upper", change_case},
    {"zfill", fill_up},
}};

const TextMethod* find_method(std::string_view name) {
  const auto* const at =
      std::find_if(kMethods.begin(), kMethods.end(),
                   [&](const TextMethod& method) { return method.name == name; });
  return at == kMethods.end() ? nullptr : at;
}

}  // namespace

bool has_text_method(std::string_view name) { return find_method(name) != nullptr; }

Value call_text_method(Runtime& runtime, const Value& self, std::string_view name,
                       const Arguments& arguments) {
  const TextMethod* method = find_method(name);
  if (method->call == nullptr) fail(fmt::format("the method '{}' is not supported", name));
  return method->call({runtime, self, name, arguments});
}

}  // namespace snug::text::jinja
