// Values of a template: those of Python that jinja2 would compute with, as far as templates see
// them. Lists and dictionaries cannot be changed once they are made, as in jinja2's immutable
// sandbox, so that copies share them. Values are cheap to copy; const ones may be read by any
// thread. Objects (namespaces, macros, loops) belong to the rendering that made them. What is made
// while a template runs is charged (meter.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/chat/jinja/meter.h"

namespace snug::text::jinja {

class Value;
class Dict;

using List = std::vector<Value, MeteredAllocator<Value>>;

// What only a running template has: a namespace, a macro, a loop, a generator, a bound method.
class Object {
 public:
  virtual ~Object() = default;
  virtual const char* type_name() const = 0;  // Python's
};

class Value {
 public:
  // view: dict.items() and the like. range: what range() gives.
  enum class Kind : uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    text,
    list,
    tuple,
    view,
    range,
    dict,
    object
  };

  Value() = default;  // undefined
  // `message` says what is missing, and is what an error says where the value is used.
  static Value undefined(std::string message);
  static Value none();
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  // Safe text is HTML (markupsafe's Markup): what is added to it is escaped.
  static Value text(std::string value, bool is_safe = false);
  static Value charged_text(std::string value, bool is_safe);  // whose bytes are charged
  // Throw TemplateError where values nest too deep, or hold too much with all that is shared in
  // them counted as often as it stands there (limits.h).
  static Value list(List items, Kind kind = Kind::list);
  static Value dict(Dict items);
  static Value object(Object* value);  // not owned

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_sequence() const { return kind_ >= Kind::list && kind_ <= Kind::range; }
  bool is_number() const { return kind_ >= Kind::boolean && kind_ <= Kind::real; }
  bool is_whole() const { return kind_ == Kind::boolean || kind_ == Kind::integer; }
  bool is_safe() const { return is_safe_; }

  // Each requires the kind.
  bool as_boolean() const { return number_ != 0; }
  int64_t as_integer() const { return number_; }  // or boolean
  double as_real() const;                         // of any number
  const std::string& as_text() const { return *static_cast<const std::string*>(shared_.get()); }
  const List& items() const { return *static_cast<const List*>(shared_.get()); }  // of a sequence
  const Dict& as_dict() const;
  Object* as_object() const { return object_; }
  std::string undefined_message() const;

  bool is_true() const;
  int depth() const { return depth_; }
  // Bytes of texts and elements, what is shared as often as it stands there: what printing and
  // comparing take.
  int64_t unfolded_size() const;
  std::string type_name() const;  // Python's: "str", "dict", ...

 private:
  Kind kind_ = Kind::undefined;
  bool is_safe_ = false;
  uint8_t depth_ = 0;
  int64_t number_ = 0;  // a real by its bits; of what holds values their unfolded size
  Object* object_ = nullptr;
  std::shared_ptr<const void> shared_;  // a std::string, List or Dict; of undefined its message
};

// Keys are in the order in which they were first set.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  using Entries = std::vector<Entry, MeteredAllocator<Entry>>;

  // Throws TemplateError for a key that Python cannot hash.
  void set(Value key, Value value);
  const Value* find(const Value& key) const;  // or null; a key that cannot be hashed is in none
  const Value* find(std::string_view key) const;
  const Entries& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }

 private:
  using Place = std::pair<const size_t, size_t>;
  using Places = std::unordered_multimap<size_t, size_t, std::hash<size_t>, std::equal_to<>,
                                         MeteredAllocator<Place>>;

  size_t place_of(const Value& key) const;  // or the number of entries

  Entries entries_;
  Places places_;  // by the key's hash
};

// Throws TemplateError with a message made by fmt::format.
[[noreturn]] void fail(const std::string& message);

}  // namespace snug::text::jinja
