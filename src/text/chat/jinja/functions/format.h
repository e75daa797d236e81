// Python's two ways of formatting: "%s of %d" % values, and "{} of {name:>5}".format(...).
#pragma once

#include <string>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

// Supports %s, %r, %d, %i, %u, %f, %F, %e, %E, %g, %G, %x, %X, %o, %c and %%, with flags, width and
// precision; a name in parentheses selects from a dictionary. Throws TemplateError for others.
Value format_percent(Runtime& runtime, const Value& pattern, const Value& values);

// Supports fields without a name, with a number or with a name, and their attributes and items; !s
// and !r; fill, alignment, sign, zero, width, ",", precision and the types s, d, f, F, e, E, g, G,
// x, X, %.
Value format_braces(Runtime& runtime, const std::string& pattern, const Arguments& arguments);

}  // namespace snug::text::jinja
