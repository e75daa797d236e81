// Objects of a template besides data: namespaces, loops, functions and bound methods.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/jinja/runtime.h"
#include "text/chat/jinja/values/iterate.h"

namespace snug::text::jinja {

// namespace(a=1): attributes that {% set n.a = 2 %} can change from any scope.
class Namespace : public Object {
 public:
  const char* type_name() const override { return "Namespace"; }
  const Value* find(const std::string& name) const;
  // Throws TemplateError for a name that begins with '_', which transformers refuses.
  void set(const std::string& name, Value value);

 private:
  Dict fields_;
};

// The variable `loop` of a template.
class Loop : public Object {
 public:
  explicit Loop(Elements items) : items_(std::move(items)) {}
  const char* type_name() const override { return "LoopContext"; }
  const Elements& items() const { return items_; }
  void enter(size_t index) { index_ = index; }
  Value attribute(const std::string& name) const;
  bool changed(List values);
  Value cycle(const List& values) const;

 private:
  Elements items_;
  size_t index_ = 0;
  bool has_seen_ = false;
  List seen_;  // the last arguments of changed()
};

class Function : public Object {
 public:
  using Body = Value (*)(Runtime&, const Arguments&);
  explicit Function(Body body) : body_(body) {}
  const char* type_name() const override { return "function"; }
  Value call(Runtime& runtime, const Arguments& arguments) const {
    return body_(runtime, arguments);
  }

 private:
  Body body_;
};

// value.name for a method that has not been called yet.
class BoundMethod : public Object {
 public:
  BoundMethod(Value self, std::string name) : self_(std::move(self)), name_(std::move(name)) {}
  const char* type_name() const override { return "builtin_function_or_method"; }
  const Value& self() const { return self_; }
  const std::string& name() const { return name_; }

 private:
  Value self_;
  std::string name_;
};

// The value as an object of this type, or null.
template <typename T>
T* object_as(const Value& value) {
  return value.is(Value::Kind::object) ? dynamic_cast<T*>(value.as_object()) : nullptr;
}

// A global function of every template (range, namespace, raise_exception, ...), or null.
Function::Body find_global(std::string_view name);

}  // namespace snug::text::jinja
