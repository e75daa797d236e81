// Equality, order and membership as Python has them. Pure functions; what Python cannot order
// throws TemplateError.
#pragma once

#include "text/jinja/value.h"

namespace snug::text::jinja {

bool equal(const Value& left, const Value& right);
// Whether left < right.
bool less(const Value& left, const Value& right);
// `item in container`: an element, a key, or a part of a text.
bool contains(const Value& container, const Value& item);

}  // namespace snug::text::jinja
