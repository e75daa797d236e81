// The filters of jinja2, and tojson as transformers replaces it. The table lists those that are
// supported; the parser refuses any other by name.
#pragma once

#include <span>
#include <string_view>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

struct Filter {
  std::string_view name;
  Value (*apply)(Runtime&, const Value& input, const Arguments&);
};

const Filter* find_filter(std::string_view name);

// Parts of the table, by what a filter takes.
std::span<const Filter> text_filters();
std::span<const Filter> number_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> order_filters();
std::span<const Filter> selection_filters();

}  // namespace snug::text::jinja
