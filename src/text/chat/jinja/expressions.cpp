#include <fmt/format.h>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/functions/methods.h"
#include "text/chat/jinja/functions/tests.h"
#include "text/chat/jinja/renderer.h"
#include "text/chat/jinja/values/attributes.h"
#include "text/chat/jinja/values/operators.h"
#include "text/chat/jinja/values/print.h"

namespace snug::text::jinja {

using ExpressionKind = Expression::Kind;

Renderer::Renderer(const Syntax& syntax, const Variables& variables, std::time_t now)
    : Runtime(now),
      syntax_(syntax),
      given_(syntax.names.size(), nullptr),
      globals_(syntax.names.size()) {
  for (const auto& [name, value] : variables) {
    const int index = syntax_.index_of(name);
    if (index >= 0) given_[static_cast<size_t>(index)] = &value;
  }
  loop_name_ = syntax_.index_of("loop");
}

Value Renderer::evaluate(const Expression& node) {
  const Level level(*this);
  switch (node.kind) {
    case ExpressionKind::constant:
      return node.value;
    case ExpressionKind::name:
      return variable(node.name);
    case ExpressionKind::list:
    case ExpressionKind::tuple:
      return evaluate_list(node);
    case ExpressionKind::dict:
      return evaluate_dict(node);
    case ExpressionKind::attribute:
      return attribute_of(*this, evaluate(*node.parts[0]), node.text);
    case ExpressionKind::item: {
      const Value value = evaluate(*node.parts[0]);
      return item_of(*this, value, evaluate(*node.parts[1]));
    }
    case ExpressionKind::slice:
      return evaluate_slice(node);
    case ExpressionKind::call:
      return call_expression(node, nullptr);
    case ExpressionKind::filter:
      return evaluate_filter(node);
    case ExpressionKind::test:
      return evaluate_test(node);
    case ExpressionKind::unary:
      return evaluate_unary(node);
    case ExpressionKind::binary:
      return evaluate_binary(node);
    case ExpressionKind::compare:
      return evaluate_compare(node);
    case ExpressionKind::concatenate:
      return evaluate_concatenate(node);
    case ExpressionKind::conditional:
      return evaluate_conditional(node);
  }
  return {};
}

Value Renderer::variable(int name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    charge_steps(scope->variables.size(), kVariablesPerStep);
    for (const auto& [own, value] : scope->variables)
      if (own == name) return value;
  }
  const auto index = static_cast<size_t>(name);
  if (syntax_.names[index] == "self") fail("the name 'self' is not supported");
  if (given_[index] != nullptr) return *given_[index];
  Value& global = globals_[index];
  if (global.is(Value::Kind::undefined)) {
    const Function::Body body = find_global(syntax_.names[index]);
    if (body == nullptr)
      return Value::undefined(fmt::format("'{}' is undefined", syntax_.names[index]));
    global = make<Function>(body);
  }
  return global;
}

Value Renderer::evaluate_list(const Expression& node) {
  List items;
  items.reserve(node.parts.size());
  for (const ExpressionPtr& part : node.parts) items.push_back(evaluate(*part));
  return Value::list(std::move(items),
                     node.kind == ExpressionKind::list ? Value::Kind::list : Value::Kind::tuple);
}

Value Renderer::evaluate_dict(const Expression& node) {
  Dict items;
  for (size_t i = 0; i < node.parts.size(); i += 2) {
    Value key = evaluate(*node.parts[i]);
    items.set(std::move(key), evaluate(*node.parts[i + 1]));
  }
  return Value::dict(std::move(items));
}

Value Renderer::evaluate_unary(const Expression& node) {
  const Value value = evaluate(*node.parts[0]);
  if (node.text == "not") return Value::boolean(!holds(value));
  return node.text == "-" ? negative(value) : positive(value);
}

Value Renderer::evaluate_binary(const Expression& node) {
  Value left = evaluate(*node.parts[0]);
  if (node.text == "and") return holds(left) ? evaluate(*node.parts[1]) : std::move(left);
  if (node.text == "or") return holds(left) ? std::move(left) : evaluate(*node.parts[1]);
  const Value right = evaluate(*node.parts[1]);
  line_ = node.line;
  return binary(*this, node.text, left, right);
}

Value Renderer::evaluate_compare(const Expression& node) {
  Value left = evaluate(*node.parts[0]);
  for (size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.parts[i + 1]);
    if (!compare(node.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Renderer::evaluate_concatenate(const Expression& node) {
  std::vector<Value> parts;
  size_t size = 0;
  for (const ExpressionPtr& part : node.parts) {
    Value value = evaluate(*part);
    require_defined(value);
    parts.push_back(printed(value));
    size += parts.back().as_text().size();
  }
  TextBuilder joined(size);
  for (const Value& part : parts) joined.add(part.as_text());
  return joined.take_value();
}

Value Renderer::evaluate_conditional(const Expression& node) {
  if (holds(evaluate(*node.parts[1]))) return evaluate(*node.parts[0]);
  if (node.parts[2]) return evaluate(*node.parts[2]);
  // jinja2 lets this one be empty even where what is undefined is an error.
  if (syntax_.is_strict) return Value::text("");
  return Value::undefined("the condition of an 'if' without an 'else' does not hold");
}

Value Renderer::evaluate_slice(const Expression& node) {
  const Value value = evaluate(*node.parts[0]);
  const auto bound = [&](size_t index) {
    if (!node.parts[index]) return Value();
    Value result = evaluate(*node.parts[index]);
    if (result.is(Value::Kind::undefined)) fail(result.undefined_message());
    return result;
  };
  const Value begin = bound(1);
  const Value end = bound(2);
  return slice(value, begin, end, bound(3));
}

Arguments Renderer::arguments_of(const Expression& node, const Value* caller) {
  Arguments arguments;
  arguments.positional.reserve(node.parts.size());
  for (size_t i = 1; i < node.parts.size(); ++i)
    arguments.positional.push_back(evaluate(*node.parts[i]));
  for (const auto& [name, value] : node.named) arguments.named.emplace_back(name, evaluate(*value));
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  return arguments;
}

Value Renderer::evaluate_filter(const Expression& node) {
  const Value input = node.parts[0] ? evaluate(*node.parts[0]) : *block_text_;
  const Arguments arguments = arguments_of(node, nullptr);
  line_ = node.line;
  return node.filter->apply(*this, input, arguments);
}

Value Renderer::evaluate_test(const Expression& node) {
  const Value input = evaluate(*node.parts[0]);
  const Arguments arguments = arguments_of(node, nullptr);
  line_ = node.line;
  return Value::boolean(node.test->holds(*this, input, arguments));
}

Value Renderer::call_expression(const Expression& node, const Value* caller) {
  const Expression& callee = *node.parts[0];
  if (callee.kind == ExpressionKind::attribute) {
    const Value self = evaluate(*callee.parts[0]);
    if (has_method(self, callee.text)) {
      const Arguments arguments = arguments_of(node, caller);
      line_ = node.line;
      return call_method(*this, self, callee.text, arguments);
    }
    const Value value = attribute_of(*this, self, callee.text);
    Arguments arguments = arguments_of(node, caller);
    line_ = node.line;
    return call(value, std::move(arguments));
  }
  const Value value = evaluate(callee);
  Arguments arguments = arguments_of(node, caller);
  line_ = node.line;
  return call(value, std::move(arguments));
}

Value Renderer::call(const Value& callee, Arguments arguments) {
  const Level level(*this);
  if (const auto* macro = object_as<Macro>(callee)) return call_macro(*macro, std::move(arguments));
  if (const auto* function = object_as<Function>(callee)) return function->call(*this, arguments);
  if (const auto* method = object_as<BoundMethod>(callee)) {
    auto* loop = object_as<Loop>(method->self());
    if (loop == nullptr) return call_method(*this, method->self(), method->name(), arguments);
    if (method->name() == "cycle") return loop->cycle(arguments.positional);
    return Value::boolean(loop->changed(std::move(arguments.positional)));
  }
  if (callee.is(Value::Kind::undefined)) fail(callee.undefined_message());
  fail(fmt::format("a {} cannot be called", callee.type_name()));
}

}  // namespace snug::text::jinja
