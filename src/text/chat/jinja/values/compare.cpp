#include "text/chat/jinja/values/compare.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/objects.h"
#include "text/chat/jinja/values/part_search.h"

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

bool less_list(const List& left, const List& right) {
  const auto [a, b] = std::mismatch(left.begin(), left.end(), right.begin(), right.end(), equal);
  if (b == right.end()) return false;
  return a == left.end() || less(*a, *b);
}

}  // namespace

bool equal(const Value& left, const Value& right) {
  charge_steps(1);
  if (left.is_number() && right.is_number()) {
    if (left.is_whole() && right.is_whole()) return left.as_integer() == right.as_integer();
    return left.as_real() == right.as_real();
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::text:
      if (left.as_text().size() != right.as_text().size()) return false;
      charge_steps(left.as_text().size(), kComparedPerStep);
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
      // Python compares the objects of bound methods by identity, which is not supported.
      if (object_as<BoundMethod>(left) != nullptr && object_as<BoundMethod>(right) != nullptr)
        fail("comparing methods is not supported");
      return left.as_object() == right.as_object();
    default:
      return true;  // both are undefined, or both are none
  }
}

bool less(const Value& left, const Value& right) {
  charge_steps(1);
  for (const Value* value : {&left, &right})
    if (value->is(Kind::undefined)) fail(value->undefined_message());
  if (left.is_number() && right.is_number()) {
    if (left.is_whole() && right.is_whole()) return left.as_integer() < right.as_integer();
    return left.as_real() < right.as_real();
  }
  if (left.is(Kind::text) && right.is(Kind::text)) {
    charge_steps(std::min(left.as_text().size(), right.as_text().size()), kComparedPerStep);
    return left.as_text() < right.as_text();
  }
  if (left.kind() == right.kind() && (left.is(Kind::list) || left.is(Kind::tuple)))
    return less_list(left.items(), right.items());
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
    return PartSearch(container.as_text(), item.as_text(), false).next() != std::string::npos;
  }
  const Elements items = elements(container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& element) { return equal(element, item); });
}

size_t hash_of(std::string_view key) {
  charge_steps(key.size(), kComparedPerStep);
  return std::hash<std::string_view>()(key);
}

size_t hash_of(const Value& key) {
  if (key.is_number()) return std::hash<double>()(key.as_real());
  if (key.is(Kind::text)) return hash_of(std::string_view(key.as_text()));
  if (key.is(Kind::tuple)) {
    charge_steps(static_cast<int64_t>(key.items().size()));
    size_t hash = key.items().size();
    for (const Value& item : key.items()) hash = hash * 31 + hash_of(item);
    return hash;
  }
  // All bound methods have the same hash, so that equal() is called and refuses them.
  if (key.is(Kind::object) && object_as<BoundMethod>(key) == nullptr)
    return std::hash<const void*>()(key.as_object());
  return static_cast<size_t>(key.kind());
}

}  // namespace snug::text::jinja
