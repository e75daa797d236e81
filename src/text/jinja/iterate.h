// What a for loop and filters over sequences walk over. A generator (the result of map, select and
// their like) can be walked over once.
#pragma once

#include <cstddef>

#include "text/jinja/value.h"

namespace snug::text::jinja {

class Generator : public Object {
 public:
  explicit Generator(List items) : items_(std::move(items)) {}
  const char* type_name() const override { return "generator"; }

  List rest() {
    List left(items_.begin() + static_cast<std::ptrdiff_t>(next_), items_.end());
    next_ = items_.size();
    return left;
  }
  const Value* next() { return next_ < items_.size() ? &items_[next_++] : nullptr; }

 private:
  List items_;
  size_t next_ = 0;
};

// The generator that a value is, or null.
Generator* generator_of(const Value& value);

// Whether Python could iterate over it.
bool is_iterable(const Value& value);

// The elements: a text's characters (plain ones, of safe text too), a dictionary's keys, what is
// left of a generator, which is empty afterwards. Throws TemplateError for what cannot be iterated
// over.
List elements(const Value& value);

}  // namespace snug::text::jinja
