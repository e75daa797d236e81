// One rendering as filters, tests and methods see it: what is left to use, the objects that it
// made, and calls back into the template. Used by one thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/arguments.h"
#include "text/jinja/limits.h"
#include "text/jinja/value.h"

namespace snug::text::jinja {

class Runtime {
 public:
  explicit Runtime(std::time_t now) : now_(now) {}
  virtual ~Runtime() = default;

  std::time_t now() const { return now_; }

  // Calls a macro, a function or a method.
  virtual Value call(const Value& callee, Arguments arguments) = 0;

  // Throws TemplateError once a template has taken more than limits.h allows.
  void charge_steps(int64_t steps) {
    steps_ -= steps;
    if (steps_ < 0) fail("the template runs too long; does it loop over too much?");
  }
  void charge_bytes(int64_t bytes) {
    bytes_ -= bytes;
    if (bytes_ < 0) fail("the template makes too much text");
  }

  // Values that count against the limits.
  Value text(std::string value, bool is_safe = false) {
    charge_bytes(static_cast<int64_t>(value.size()));
    return Value::text(std::move(value), is_safe);
  }
  Value list(List items, Value::Kind kind = Value::Kind::list) {
    charge(items.size());
    return Value::list(std::move(items), kind);
  }
  Value dict(Dict items) {
    charge(items.size() * 3);
    return Value::dict(std::move(items));
  }
  void charge(size_t values) {
    charge_steps(static_cast<int64_t>(values));
    charge_bytes(static_cast<int64_t>(values * sizeof(Value)));
  }

  // An object that lives as long as the rendering.
  template <typename T, typename... Args>
  Value make(Args&&... args) {
    charge_bytes(static_cast<int64_t>(sizeof(T) + 2 * sizeof(void*)));
    objects_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
    return Value::object(objects_.back().get());
  }
  Value generator(List items);

 private:
  std::time_t now_;
  int64_t steps_ = kMaxSteps;
  int64_t bytes_ = kMaxBytes;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace snug::text::jinja
