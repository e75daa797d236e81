// Python's methods of texts, lists, tuples and dictionaries.
#pragma once

#include <string>
#include <string_view>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

// Whether Python has a method of this name, whether or not it is supported here.
bool has_method(const Value& self, std::string_view name);

// Whether the value has a method of this name that changes it, which jinja2's sandbox hides; and
// the error message for such a method.
bool changes_value(const Value& self, std::string_view name);
std::string change_message(const Value& self, std::string_view name);

// Requires has_method. Throws TemplateError for a method that is not supported, and for one that
// would change the value on which it is called, as jinja2's sandbox does.
Value call_method(Runtime& runtime, const Value& self, std::string_view name,
                  const Arguments& arguments);

// The methods of texts, which are by far the most.
bool has_text_method(std::string_view name);
Value call_text_method(Runtime& runtime, const Value& self, std::string_view name,
                       const Arguments& arguments);

}  // namespace snug::text::jinja
