// Equality, order and membership as in Python. Every comparison is charged. Values that Python
// cannot order throw TemplateError.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

bool equal(const Value& left, const Value& right);
// Whether left < right.
bool less(const Value& left, const Value& right);
// `item in container`: whether it is an element, a key, or a substring.
bool contains(const Value& container, const Value& item);

// The same for values that are equal. Requires a hashable value.
size_t hash_of(const Value& key);
size_t hash_of(std::string_view key);

}  // namespace snug::text::jinja
