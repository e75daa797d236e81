// Equality, order and membership as Python has them. Every pair that is compared is
// charged. What Python cannot order throws TemplateError.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

bool equal(const Value& left, const Value& right);
// Whether left < right.
bool less(const Value& left, const Value& right);
// `item in container`: an element, a key, or a part of a text.
bool contains(const Value& container, const Value& item);

// Alike for values that are equal. Requires one that can be a key.
size_t hash_of(const Value& key);
size_t hash_of(std::string_view key);

}  // namespace snug::text::jinja
