// A rendering as filters, tests and methods see it: it owns the objects that it creates, and allows
// calls back into the template. Used by one thread, whose meter (meter.h) it holds.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/chat/jinja/functions/arguments.h"
#include "text/chat/jinja/meter.h"
#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

class Runtime {
 public:
  explicit Runtime(std::time_t now) : now_(now) {}
  virtual ~Runtime() = default;

  std::time_t now() const { return now_; }

  // Calls a macro, a function or a method.
  virtual Value call(const Value& callee, Arguments arguments) = 0;

  // Counts one level of nesting and one step, as long as the object lives. Throws TemplateError if
  // the nesting is too deep.
  class Level {
   public:
    explicit Level(Runtime& runtime);
    ~Level() { --runtime_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& runtime_;
  };

  // Creates an object that lives as long as the rendering.
  template <typename T, typename... Args>
  Value make(Args&&... args) {
    constexpr size_t kHeld = 5 * sizeof(void*);  // of the allocation and the list of objects
    charge_bytes(static_cast<int64_t>(sizeof(T) + kHeld));
    objects_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
    return Value::object(objects_.back().get());
  }
  Value generator(List items);

 private:
  std::time_t now_;
  Meter meter_;
  int depth_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace snug::text::jinja
