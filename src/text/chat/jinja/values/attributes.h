// value.name and value[key] as jinja2's sandbox finds them: of an attribute and an item of one name
// the dot prefers the attribute (a method such as items of a dictionary), and the bracket the item.
// What is not there is undefined.
#pragma once

#include <string>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

Value attribute_of(Runtime& runtime, const Value& value, const std::string& name);
Value item_of(Runtime& runtime, const Value& value, const Value& key);

// "a.b.0" as filters take it: items, one after the other. Empty: the value itself.
Value path_of(Runtime& runtime, const Value& value, const Value& path);

}  // namespace snug::text::jinja
