// The arguments of a call, a filter or a test, looked up by position or by name, as in Python.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

struct Arguments {
  List positional{};
  std::vector<std::pair<std::string, Value>> named{};
};

// The arguments of a callee whose parameters are `names`, of which the first `required` must be
// given. Throws TemplateError if they do not match.
class Parameters {
 public:
  Parameters(std::string_view callee, const Arguments& arguments,
             std::initializer_list<std::string_view> names, size_t required = 0);

  bool has(size_t index) const { return given_[index] != nullptr; }
  // Undefined if it was not given.
  const Value& operator[](size_t index) const;

  int64_t integer(size_t index, int64_t otherwise) const;
  bool truth(size_t index, bool otherwise) const;
  // Throws TemplateError for a value that is not text.
  const std::string& text(size_t index) const;

 private:
  std::string_view callee_;
  std::vector<const Value*> given_;
};

}  // namespace snug::text::jinja
