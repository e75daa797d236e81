#include "text/chat/jinja/values/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "text/chat/jinja/functions/methods.h"
#include "text/chat/jinja/values/objects.h"
#include "text/chat/jinja/values/print.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

Value missing_attribute(const Value& value, std::string_view name) {
  constexpr size_t kMostShown = 200;
  return Value::undefined(fmt::format("the {} has no attribute '{}{}'", value.type_name(),
                                      first_bytes(name, kMostShown),
                                      name.size() > kMostShown ? "..." : ""));
}

Value missing(const Value& value, const Value& key) {
  if (key.is(Kind::text)) return missing_attribute(value, key.as_text());
  const bool can_print = key.is_number() || key.is(Kind::none);
  return Value::undefined(fmt::format("the {} has no element {}", value.type_name(),
                                      can_print ? print(key) : key.type_name()));
}

// Attributes that Python's objects have and templates hardly need. They are refused, since
// otherwise they would silently be undefined.
struct Known {
  std::string_view type;
  std::string_view attributes;  // each surrounded by spaces
};

constexpr std::string_view kOfIntegers =
    " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag is_integer "
    "numerator real to_bytes ";
constexpr std::array<Known, 9> kKnown{{
    {"Macro", " arguments caller catch_kwargs catch_varargs explicit_caller name "},
    {"Markup", " escape striptags unescape "},
    {"bool", kOfIntegers},
    {"dict view", " isdisjoint mapping "},
    {"float", " as_integer_ratio conjugate from_number fromhex hex imag is_integer real "},
    {"function", " current fromkeys next reset "},
    {"generator", " close gi_running gi_suspended gi_yieldfrom send throw "},
    {"int", kOfIntegers},
    {"range", " start step stop "},
}};

void refuse_known(const Value& value, const std::string& name) {
  const std::string type = value.type_name();
  const std::string word = fmt::format(" {} ", name);
  for (const Known& known : kKnown)
    if (known.type == type && known.attributes.find(word) != std::string_view::npos)
      fail(fmt::format("the attribute '{}' of a {} is not supported", name, type));
}

// An attribute as Python's getattr finds it; nothing if there is none.
std::optional<Value> own_attribute(Runtime& runtime, const Value& value, const std::string& name) {
  charge_steps(name.size(), kSearchedPerStep);
  if (name.starts_with("__") && name.ends_with("__"))
    fail(fmt::format("the attribute '{}' is not supported", name));
  if (const auto* space = object_as<Namespace>(value)) {
    const Value* found = space->find(name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (const auto* loop = object_as<Loop>(value)) {
    if (name == "cycle" || name == "changed") return runtime.make<BoundMethod>(value, name);
    return loop->attribute(name);
  }
  // The sandbox hides methods that change the value.
  if (changes_value(value, name)) return Value::undefined(change_message(value, name));
  if (has_method(value, name)) return runtime.make<BoundMethod>(value, name);
  refuse_known(value, name);
  return std::nullopt;
}

std::optional<Value> own_item(const Value& value, const Value& key) {
  if (value.is(Kind::dict)) {
    const Value* found = value.as_dict().find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!key.is_whole()) return std::nullopt;
  int64_t index = key.as_integer();
  if (value.is_sequence() && !value.is(Kind::view)) {
    const auto size = static_cast<int64_t>(value.items().size());
    if (index < 0) index += size;
    if (index < 0 || index >= size) return std::nullopt;
    return value.items()[static_cast<size_t>(index)];
  }
  if (value.is(Kind::text)) {
    const std::string& text = value.as_text();
    if (index < 0) index += length(text);
    const size_t begin = index < 0 ? text.size() : byte_of(text, index);
    if (begin >= text.size()) return std::nullopt;
    return Value::text(text.substr(begin, sequence_length(static_cast<unsigned char>(text[begin]))),
                       value.is_safe());
  }
  return std::nullopt;
}

}  // namespace

Value attribute_of(Runtime& runtime, const Value& value, const std::string& name) {
  if (value.is(Kind::undefined)) fail(value.undefined_message());
  if (auto found = own_attribute(runtime, value, name)) return *found;
  if (value.is(Kind::dict)) {
    const Value* found = value.as_dict().find(std::string_view(name));
    if (found != nullptr) return *found;
  }
  return missing_attribute(value, name);
}

Value item_of(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is(Kind::undefined)) fail(value.undefined_message());
  if (auto found = own_item(value, key)) return *found;
  if (key.is(Kind::text)) {
    const std::string& name = key.as_text();
    if (!name.starts_with("__"))
      if (auto found = own_attribute(runtime, value, name)) return *found;
  }
  return missing(value, key);
}

Value path_of(Runtime& runtime, const Value& value, const Value& path) {
  if (path.is_whole()) return item_of(runtime, value, path);
  if (!path.is(Kind::text))
    fail(fmt::format("an attribute is named by a text, not by a {}", path.type_name()));
  Value at = value;
  for (const std::string_view part : split(path.as_text(), ".", -1, false)) {
    charge_steps(1);
    const bool is_index = !part.empty() && std::all_of(part.begin(), part.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
    int64_t index = 0;
    if (is_index) std::from_chars(part.data(), part.data() + part.size(), index);
    at = item_of(runtime, at, is_index ? Value::integer(index) : Value::text(std::string(part)));
  }
  return at;
}

}  // namespace snug::text::jinja
