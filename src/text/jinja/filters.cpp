#include "text/jinja/filters.h"

#include <algorithm>
#include <array>

#include "text/jinja/iterate.h"
#include "text/jinja/print.h"

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

Value soft_text(Runtime& runtime, const Value& value) {
  return value.is(Value::Kind::text) ? value : runtime.text(print(value));
}

Value Runtime::generator(List items) {
  charge(items.size());
  return make<Generator>(std::move(items));
}

}  // namespace snug::text::jinja
