#include "text/chat/jinja/functions/filters.h"

#include <algorithm>
#include <array>

namespace snug::text::jinja {

const Filter* find_filter(std::string_view name) {
  for (const std::span<const Filter> part :
       std::array{text_filters(), number_filters(), sequence_filters(), order_filters(),
                  selection_filters()}) {
    const auto at = std::find_if(part.begin(), part.end(),
                                 [&](const Filter& filter) { return filter.name == name; });
    if (at != part.end()) return &*at;
  }
  return nullptr;
}

}  // namespace snug::text::jinja
