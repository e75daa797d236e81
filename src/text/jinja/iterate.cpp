#include "text/jinja/iterate.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace snug::text::jinja {

using Kind = Value::Kind;

Generator* generator_of(const Value& value) {
  return value.is(Kind::object) ? dynamic_cast<Generator*>(value.as_object()) : nullptr;
}

bool is_iterable(const Value& value) {
  return value.is_sequence() || value.is(Kind::text) || value.is(Kind::dict) ||
         value.is(Kind::undefined) || generator_of(value) != nullptr;
}

List elements(const Value& value) {
  if (value.is_sequence()) return value.items();
  if (value.is(Kind::undefined)) return {};
  List items;
  if (value.is(Kind::dict)) {
    items.reserve(value.as_dict().size());
    for (const auto& entry : value.as_dict().entries()) items.push_back(entry.first);
    return items;
  }
  if (value.is(Kind::text)) {
    const std::string& text = value.as_text();
    for (size_t i = 0; i < text.size();) {
      const size_t size = sequence_length(static_cast<unsigned char>(text[i]));
      items.push_back(Value::text(text.substr(i, size)));
      i += size;
    }
    return items;
  }
  if (Generator* generator = generator_of(value)) return generator->rest();
  fail(fmt::format("a {} cannot be iterated over", value.type_name()));
}

}  // namespace snug::text::jinja
