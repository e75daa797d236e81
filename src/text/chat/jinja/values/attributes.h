// value.name and value[key] as jinja2's sandbox resolves them. If an attribute and an item have the
// same name, the dot prefers the attribute (such as the method items of a dictionary), and brackets
// prefer the item. Anything that does not exist is undefined.
#pragma once

#include <string>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

Value attribute_of(Runtime& runtime, const Value& value, const std::string& name);
Value item_of(Runtime& runtime, const Value& value, const Value& key);

// Follows a path such as "a.b.0", which filters accept: items one after the other. An empty path
// gives the value itself.
Value path_of(Runtime& runtime, const Value& value, const Value& path);

}  // namespace snug::text::jinja
