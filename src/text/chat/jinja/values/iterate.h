// The elements over which for loops and sequence filters run. A generator (the result of map,
// select and similar filters) can be iterated over only once.
#pragma once

#include <cstddef>
#include <utility>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

// The elements of a value; those of a sequence are shared with it. Each element is charged as a
// step.
class Elements {
 public:
  // The elements are a text's characters (plain text even if the text is safe), a dictionary's
  // keys, or the rest of a generator, which is empty afterwards. Throws TemplateError for a value
  // that cannot be iterated over.
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

// The value as a generator, or null.
Generator* generator_of(const Value& value);

// Whether Python could iterate over it.
bool is_iterable(const Value& value);

// The first or last element: of a text its character, of a dictionary its key. Undefined if there
// is none.
Value end_element(const Value& value, bool is_last);

}  // namespace snug::text::jinja
