// jinja2's tests: `value is defined`. The parser refuses any test that is not listed, by name.
#pragma once

#include <string_view>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

struct Test {
  std::string_view name;
  bool (*holds)(Runtime&, const Value& input, const Arguments&);
};

const Test* find_test(std::string_view name);

}  // namespace snug::text::jinja
