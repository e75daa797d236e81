// jinja2's filters, and tojson as replaced by transformers. The table lists the supported ones; the
// parser refuses any other by name.
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

// Parts of the table, by the type of the filters' input.
std::span<const Filter> text_filters();
std::span<const Filter> number_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> order_filters();
std::span<const Filter> selection_filters();

}  // namespace snug::text::jinja
