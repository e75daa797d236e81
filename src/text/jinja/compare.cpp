#include "text/jinja/compare.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/iterate.h"
#include "text/jinja/objects.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

bool equal_dicts(const Dict& left, const Dict& right) {
  if (left.size() != right.size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = right.find(entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

}  // namespace

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_whole() && right.is_whole()) return left.as_integer() == right.as_integer();
    return left.as_real() == right.as_real();
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::text:
      return left.as_text() == right.as_text();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view:
      return std::equal(left.items().begin(), left.items().end(), right.items().begin(),
                        right.items().end(), equal);
    case Kind::dict:
      return equal_dicts(left.as_dict(), right.as_dict());
    case Kind::object:
      // Python compares what methods are bound to by identity.
      if (object_as<BoundMethod>(left) != nullptr && object_as<BoundMethod>(right) != nullptr)
        fail("comparing methods is not supported");
      return left.as_object() == right.as_object();
    default:
      return true;  // undefined or none, both
  }
}

bool less(const Value& left, const Value& right) {
  for (const Value* value : {&left, &right})
    if (value->is(Kind::undefined)) fail(value->undefined_message());
  if (left.is_number() && right.is_number()) {
    if (left.is_whole() && right.is_whole()) return left.as_integer() < right.as_integer();
    return left.as_real() < right.as_real();
  }
  if (left.is(Kind::text) && right.is(Kind::text)) return left.as_text() < right.as_text();
  if (left.kind() == right.kind() && (left.is(Kind::list) || left.is(Kind::tuple)))
    return std::lexicographical_compare(
        left.items().begin(), left.items().end(), right.items().begin(), right.items().end(),
        [](const Value& a, const Value& b) { return !equal(a, b) && less(a, b); });
  fail(fmt::format("'<' is not supported between a {} and a {}", left.type_name(),
                   right.type_name()));
}

bool contains(const Value& container, const Value& item) {
  if (container.is(Kind::dict)) {
    if (item.is(Kind::list) || item.is(Kind::dict))
      fail(fmt::format("a {} cannot be the key of a dictionary", item.type_name()));
    return container.as_dict().find(item) != nullptr;
  }
  if (container.is(Kind::text)) {
    if (!item.is(Kind::text))
      fail(fmt::format("'in' looks for a text in a text, not for a {}", item.type_name()));
    return container.as_text().find(item.as_text()) != std::string::npos;
  }
  const List items = elements(container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& element) { return equal(element, item); });
}

}  // namespace snug::text::jinja
