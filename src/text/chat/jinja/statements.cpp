#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "text/chat/jinja/renderer.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/print.h"

namespace snug::text::jinja {

using StatementKind = Statement::Kind;

void Scope::set(int name, Value value) {
  charge_steps(variables.size(), kVariablesPerStep);
  for (auto& [own, current] : variables)
    if (own == name) {
      current = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

Renderer::OpenScope::OpenScope(Renderer& renderer, Scope* parent)
    : renderer_(renderer), before_(renderer.scope_) {
  if (renderer_.spare_.empty()) {
    charge_bytes(sizeof(Scope));
    renderer_.spare_.push_back(std::make_unique<Scope>());
  }
  scope_ = std::move(renderer_.spare_.back());
  renderer_.spare_.pop_back();
  scope_->parent = parent;
  renderer_.scope_ = scope_.get();
}

Renderer::OpenScope::~OpenScope() {
  renderer_.scope_ = before_;
  if (!scope_->is_kept) scope_->variables.clear();
  (scope_->is_kept ? renderer_.kept_ : renderer_.spare_).push_back(std::move(scope_));
}

Template::Rendering Renderer::run() {
  run_body(syntax_.body);
  return {text_.take(), std::move(generated_)};
}

void Renderer::write(std::string_view text) {
  out_->add(text);
  if (text_.size() > kMaxOutputBytes)
    fail(fmt::format("the template writes more than {} MiB", kMaxOutputBytes >> 20));
}

void Renderer::require_defined(const Value& value) const {
  if (syntax_.is_strict && value.is(Value::Kind::undefined)) fail(value.undefined_message());
}

bool Renderer::holds(const Value& value) const {
  require_defined(value);
  return value.is_true();
}

void Renderer::write(const Value& value) {
  require_defined(value);
  if (value.is(Value::Kind::text)) return write(value.as_text());
  write(print(value));
}

Renderer::Flow Renderer::run_body(const Body& body) {
  for (const Statement& statement : body) {
    const Flow flow = run_statement(statement);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Renderer::Flow Renderer::run_statement(const Statement& statement) {
  const Level level(*this);
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::data:
      write(statement.text);
      return Flow::next;
    case StatementKind::output:
      write(evaluate(*statement.expressions[0]));
      return Flow::next;
    case StatementKind::set:
      assign(statement.targets[0], evaluate(*statement.expressions[0]));
      return Flow::next;
    case StatementKind::set_block:
    case StatementKind::filter: {
      TextBuilder text;
      const Flow flow = capture(statement.bodies[0], text);
      if (flow != Flow::next) return flow;
      line_ = statement.line;
      Value value = text.take_value();
      if (statement.expressions[0]) {
        const Value* outer = std::exchange(block_text_, &value);
        Value filtered = evaluate(*statement.expressions[0]);
        block_text_ = outer;
        value = std::move(filtered);
      }
      if (statement.kind == StatementKind::filter)
        write(value);
      else
        assign(statement.targets[0], value);
      return Flow::next;
    }
    case StatementKind::branch:
      return run_branch(statement);
    case StatementKind::loop:
      return run_loop(statement);
    case StatementKind::with:
      return run_with(statement);
    case StatementKind::macro:
      scope_->set(statement.name, macro_value(statement, statement.text));
      return Flow::next;
    case StatementKind::call:
      run_call(statement);
      return Flow::next;
    case StatementKind::generation:
      run_generation(statement);
      return Flow::next;
    case StatementKind::break_loop:
      return Flow::breaks;
    case StatementKind::continue_loop:
      return Flow::continues;
  }
  return Flow::next;
}

Renderer::Flow Renderer::capture(const Body& body, TextBuilder& text) {
  OpenScope scope(*this, scope_);
  TextBuilder* outer = std::exchange(out_, &text);
  const Flow flow = run_body(body);
  out_ = outer;
  return flow;
}

Renderer::Flow Renderer::run_branch(const Statement& statement) {
  for (size_t i = 0; i < statement.expressions.size(); ++i)
    if (holds(evaluate(*statement.expressions[i]))) return run_body(statement.bodies[i]);
  const bool has_else = statement.bodies.size() > statement.expressions.size();
  return has_else ? run_body(statement.bodies.back()) : Flow::next;
}

// The elements over which a loop runs, without those that its condition excludes.
Elements Renderer::loop_items(const Statement& statement) {
  const Value value = evaluate(*statement.expressions[0]);
  require_defined(value);
  Elements all(value);
  if (statement.expressions.size() == 1) return all;
  List items;
  for (const Value& item : all) {
    OpenScope scope(*this, scope_);
    assign(statement.targets[0], item);
    if (holds(evaluate(*statement.expressions[1]))) items.push_back(item);
  }
  return Elements(std::move(items));
}

Renderer::Flow Renderer::run_loop(const Statement& statement) {
  const Value value = make<Loop>(loop_items(statement));
  auto& loop = static_cast<Loop&>(*value.as_object());
  for (size_t i = 0; i < loop.items().size(); ++i) {
    OpenScope scope(*this, scope_);
    charge_steps(1);
    loop.enter(i);
    if (loop_name_ >= 0) (*scope).set(loop_name_, value);
    assign(statement.targets[0], loop.items()[i]);
    if (run_body(statement.bodies[0]) == Flow::breaks) break;
  }
  if (!loop.items().empty() || statement.bodies.size() == 1) return Flow::next;
  OpenScope scope(*this, scope_);
  return run_body(statement.bodies[1]);
}

Renderer::Flow Renderer::run_with(const Statement& statement) {
  List values;
  for (const ExpressionPtr& expression : statement.expressions)
    values.push_back(evaluate(*expression));
  OpenScope scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(statement.targets[i], values[i]);
  return run_body(statement.bodies[0]);
}

void Renderer::assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) {
    auto* space = object_as<Namespace>(variable(target.name));
    if (space == nullptr)
      fail(fmt::format("'{}' is no namespace, so that '{}.{}' cannot be set",
                       syntax_.names[static_cast<size_t>(target.name)],
                       syntax_.names[static_cast<size_t>(target.name)], target.attribute));
    return space->set(target.attribute, value);
  }
  if (target.several.empty()) return scope_->set(target.name, value);
  const Elements items(value);
  if (items.size() != target.several.size())
    fail(fmt::format("{} names are set to {} values", target.several.size(), items.size()));
  for (size_t i = 0; i < items.size(); ++i) assign(target.several[i], items[i]);
}

Value Renderer::macro_value(const Statement& statement, const std::string& name) {
  for (Scope* scope = scope_; scope != nullptr && !scope->is_kept; scope = scope->parent)
    scope->is_kept = true;
  return make<Macro>(name, statement.signature, statement.bodies[0], scope_);
}

void Renderer::run_call(const Statement& statement) {
  const Value caller = macro_value(statement, "caller");
  write(call_expression(*statement.expressions[0], &caller));
}

void Renderer::run_generation(const Statement& statement) {
  if (out_ != &text_)
    fail("the tag 'generation' inside of a macro, a set block or a filter is not supported");
  const size_t begin = text_.size();
  TextBuilder text;
  capture(statement.bodies[0], text);
  write(text.view());
  generated_.push_back({begin, text_.size()});
}

// Gives parameters their values: by position, by name, or from the default.
void Renderer::bind(const Macro& macro, Arguments& arguments, Scope& scope) {
  const Signature& signature = macro.signature();
  const size_t count = signature.names.size();
  const size_t first_default = count - signature.defaults.size();
  // Charged because each parameter is searched for among the named arguments.
  charge_steps(count * arguments.named.size(), kVariablesPerStep);
  const auto take_named = [&](const std::string& name) {
    const auto at = std::find_if(arguments.named.begin(), arguments.named.end(),
                                 [&](const auto& entry) { return entry.first == name; });
    if (at == arguments.named.end()) return std::pair(false, Value());
    std::pair<bool, Value> found(true, std::move(at->second));
    arguments.named.erase(at);
    return found;
  };
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = syntax_.names[static_cast<size_t>(signature.names[i])];
    auto [is_named, value] = take_named(name);
    if (i < arguments.positional.size()) {
      if (is_named) fail(fmt::format("the macro '{}' is given '{}' twice", macro.name(), name));
      value = arguments.positional[i];
    } else if (!is_named && i >= first_default) {
      value = evaluate(*signature.defaults[i - first_default]);
    } else if (!is_named) {
      value = Value::undefined(fmt::format("parameter '{}' was not provided", name));
    }
    scope.set(signature.names[i], std::move(value));
  }
  auto [has_caller, caller] = take_named("caller");
  const auto set_special = [&](const char* name, Value value) {
    scope.set(syntax_.index_of(name), std::move(value));
  };
  if (signature.takes_caller)
    set_special("caller", has_caller ? caller : Value::undefined("no caller is defined"));
  else if (has_caller)
    fail(fmt::format("the macro '{}' takes no caller", macro.name()));
  if (signature.takes_more_named) {
    Dict more;
    for (auto& [name, value] : arguments.named) more.set(Value::text(name), value);
    set_special("kwargs", Value::dict(std::move(more)));
  } else if (!arguments.named.empty()) {
    fail(fmt::format("the macro '{}' takes no argument '{}'", macro.name(),
                     arguments.named.front().first));
  }
  if (signature.takes_more) {
    const size_t used = std::min(count, arguments.positional.size());
    set_special("varargs",
                Value::list(List(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used),
                                 arguments.positional.end()),
                            Value::Kind::tuple));
  } else if (arguments.positional.size() > count) {
    fail(fmt::format("the macro '{}' takes {} arguments, but has {}", macro.name(), count,
                     arguments.positional.size()));
  }
}

Value Renderer::call_macro(const Macro& macro, Arguments arguments) {
  const int line = line_;
  OpenScope scope(*this, macro.scope());
  bind(macro, arguments, *scope);
  TextBuilder text;
  TextBuilder* outer = std::exchange(out_, &text);
  run_body(macro.body());
  out_ = outer;
  line_ = line;
  return text.take_value();
}

}  // namespace snug::text::jinja
