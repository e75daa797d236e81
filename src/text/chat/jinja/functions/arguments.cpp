#include "text/chat/jinja/functions/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace snug::text::jinja {

Parameters::Parameters(std::string_view callee, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, size_t required)
    : callee_(callee), given_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size())
    fail(fmt::format("'{}' takes at most {} arguments, but has {}", callee, names.size(),
                     arguments.positional.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i) given_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto* const at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) fail(fmt::format("'{}' takes no argument '{}'", callee, name));
    const auto index = static_cast<size_t>(at - names.begin());
    if (given_[index] != nullptr) fail(fmt::format("'{}' is given '{}' twice", callee, name));
    given_[index] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (given_[i] == nullptr)
      fail(fmt::format("'{}' lacks the argument '{}'", callee, names.begin()[i]));
}

const Value& Parameters::operator[](size_t index) const {
  static const Value kAbsent;
  return given_[index] == nullptr ? kAbsent : *given_[index];
}

int64_t Parameters::integer(size_t index, int64_t otherwise) const {
  if (!has(index)) return otherwise;
  if (!given_[index]->is_whole())
    fail(fmt::format("'{}' expects an integer, not a {}", callee_, given_[index]->type_name()));
  return given_[index]->as_integer();
}

bool Parameters::truth(size_t index, bool otherwise) const {
  return has(index) ? given_[index]->is_true() : otherwise;
}

const std::string& Parameters::text(size_t index) const {
  const Value& value = (*this)[index];
  if (value.is(Value::Kind::undefined)) fail(value.undefined_message());
  if (!value.is(Value::Kind::text))
    fail(fmt::format("'{}' expects a text, not a {}", callee_, value.type_name()));
  return value.as_text();
}

}  // namespace snug::text::jinja
