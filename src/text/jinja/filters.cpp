#include "text/jinja/filters.h"

#include <algorithm>
#include <array>

#include "text/jinja/iterate.h"

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

Runtime::Level::Level(Runtime& runtime) : runtime_(runtime) {
  if (runtime_.depth_ >= kMaxRunDepth)
    fail("the template nests too deep; does a macro call itself without an end?");
  charge_steps(1);
  ++runtime_.depth_;
}

Value Runtime::generator(List items) { return make<Generator>(std::move(items)); }

}  // namespace snug::text::jinja
