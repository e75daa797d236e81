// What a for loop and filters over sequences walk over. A generator (the result of map, select and
// their like) can be walked over once.
#pragma once

#include <cstddef>
#include <utility>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

// The elements of a value; those of a sequence are shared with it. Each is charged as a step.
class Elements {
 public:
  // Holds a text's characters (plain ones, of safe text too), a dictionary's keys, what is left of
  // a generator, which is empty afterwards. Throws TemplateError for what cannot be iterated over.
  explicit Elements(const Value& value);
  explicit Elements(List items) : own_(std::move(items)) {}

  const List& items() const { return sequence_.is_sequence() ? sequence_.items() : own_; }
  List::const_iterator begin() const { return items().begin(); }
  List::const_iterator end() const { return items().end(); }
  size_t size() const { return items().size(); }
  bool empty() const { return items().empty(); }
  const Value& operator[](size_t index) const { return items()[index]; }

  List take() && {
    if (sequence_.is_sequence()) return sequence_.items();
    return std::move(own_);
  }

 private:
  Value sequence_{};
  List own_{};
};

inline Elements elements(const Value& value) { return Elements(value); }

class Generator : public Object {
 public:
  explicit Generator(List items) : items_(std::move(items)) {}
  const char* type_name() const override { return "generator"; }

  List rest();
  const Value* next() { return next_ < items_.size() ? &items_[next_++] : nullptr; }

 private:
  List items_;
  size_t next_ = 0;
};

// The generator that a value is, or null.
Generator* generator_of(const Value& value);

// Whether Python could iterate over it.
bool is_iterable(const Value& value);

// The first or the last character, key or element, of a text, dictionary or sequence; undefined
// where there is none.
Value end_element(const Value& value, bool is_last);

}  // namespace snug::text::jinja
