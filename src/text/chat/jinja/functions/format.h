// Python's two ways to format: "%s of %d" % values, and "{} of {name:>5}".format(...).
#pragma once

#include <string>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

// %s, %r, %d, %i, %u, %f, %F, %e, %E, %g, %G, %x, %X, %o, %c and %%, with flags, width and
// precision; names in parentheses take from a dictionary. Throws TemplateError for others.
Value format_percent(Runtime& runtime, const Value& pattern, const Value& values);

// Fields without a name, with a number or with a name, attributes and items of them; !s and !r;
// fill, alignment, sign, zero, width, ",", precision and the types s, d, f, F, e, E, g, G, x, X, %.
Value format_braces(Runtime& runtime, const std::string& pattern, const Arguments& arguments);

}  // namespace snug::text::jinja
