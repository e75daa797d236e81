#include "text/chat/jinja/values/objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat/jinja/values/compare.h"

namespace snug::text::jinja {

const Value* Namespace::find(const std::string& name) const {
  return fields_.find(std::string_view(name));
}

void Namespace::set(const std::string& name, Value value) {
  if (name.starts_with('_'))
    fail(fmt::format("the name '{}' in a namespace is not supported", name));
  fields_.set(Value::text(name), std::move(value));
}

Value Loop::attribute(const std::string& name) const {
  const auto index = static_cast<int64_t>(index_);
  const auto size = static_cast<int64_t>(items_.size());
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(size - index);
  if (name == "revindex0") return Value::integer(size - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == size);
  if (name == "length") return Value::integer(size);
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  if (name == "previtem")
    return index > 0 ? items_[index_ - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return index + 1 < size ? items_[index_ + 1] : Value::undefined("there is no next item");
  return Value::undefined(fmt::format("a loop has no attribute '{}'", name));
}

bool Loop::changed(List values) {
  const bool is_same =
      has_seen_ && std::equal(values.begin(), values.end(), seen_.begin(), seen_.end(), equal);
  has_seen_ = true;
  seen_ = std::move(values);
  return !is_same;
}

Value Loop::cycle(const List& values) const {
  if (values.empty()) fail("'cycle' is given nothing to choose from");
  return values[index_ % values.size()];
}

}  // namespace snug::text::jinja
