// Values of a template: Python's values as far as templates can distinguish them. Lists and
// dictionaries cannot be changed once they are made, as in jinja2's immutable sandbox, so copies
// share them. Values are cheap to copy; const values may be read by any thread. Objects
// (namespaces, macros, loops) belong to the rendering that created them. Creating values while a
// template runs is charged (meter.h).
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

// Values that exist only while a template runs: a namespace, a macro, a loop, a generator, a bound
// method.
class Object {
 public:
  virtual ~Object() = default;
  virtual const char* type_name() const = 0;  // Python's name
};

class Value {
 public:
  // view: the results of dict.items() and similar methods. range: the result of range().
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
  // `message` says what is missing; it becomes the error if the value is used.
  static Value undefined(std::string message);
  static Value none();
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  // Safe text is HTML (markupsafe's Markup): text that is added to it is escaped.
  static Value text(std::string value, bool is_safe = false);
  static Value charged_text(std::string value, bool is_safe);  // its bytes have been charged
  // Throw TemplateError if values nest too deeply or hold too much, where a shared value counts
  // once for each place that refers to it (limits.h).
  static Value list(List items, Kind kind = Kind::list);
  static Value dict(Dict items);
  static Value object(Object* value);  // not owned

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_sequence() const { return kind_ >= Kind::list && kind_ <= Kind::range; }
  bool is_number() const { return kind_ >= Kind::boolean && kind_ <= Kind::real; }
  bool is_whole() const { return kind_ == Kind::boolean || kind_ == Kind::integer; }
  bool is_safe() const { return is_safe_; }

  // Each of these requires a value of that kind.
  bool as_boolean() const { return number_ != 0; }
  int64_t as_integer() const { return number_; }  // also for a boolean
  double as_real() const;                         // for any number
  const std::string& as_text() const { return *static_cast<const std::string*>(shared_.get()); }
  const List& items() const { return *static_cast<const List*>(shared_.get()); }  // for a sequence
  const Dict& as_dict() const;
  Object* as_object() const { return object_; }
  std::string undefined_message() const;

  bool is_true() const;
  int depth() const { return depth_; }
  // The number of elements and bytes of texts, where a shared value counts once for each place that
  // refers to it: the work of printing and comparing.
  int64_t unfolded_size() const;
  std::string type_name() const;  // Python's name: "str", "dict", ...

 private:
  Kind kind_ = Kind::undefined;
  bool is_safe_ = false;
  uint8_t depth_ = 0;
  int64_t number_ = 0;  // a real's bits; the unfolded size of a container
  Object* object_ = nullptr;
  // A std::string, List or Dict; the message of an undefined value.
  std::shared_ptr<const void> shared_;
};

// Keys are in the order in which they were first set.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  using Entries = std::vector<Entry, MeteredAllocator<Entry>>;

  // Throws TemplateError for a key that is not hashable in Python.
  void set(Value key, Value value);
  // Null if it is not found, which includes a key that is not hashable.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const Entries& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }

 private:
  using Place = std::pair<const size_t, size_t>;
  using Places = std::unordered_multimap<size_t, size_t, std::hash<size_t>, std::equal_to<>,
                                         MeteredAllocator<Place>>;

  size_t place_of(const Value& key) const;  // the number of entries if it is not found

  Entries entries_;
  Places places_;  // by the key's hash
};

// Throws TemplateError with a message formatted by fmt::format.
[[noreturn]] void fail(const std::string& message);

}  // namespace snug::text::jinja
