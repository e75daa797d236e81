// Runs a syntax tree: scopes, statements and expressions. For use inside jinja/ only.
//
// Scopes are as in jinja2: each loop iteration, each macro call and the bodies of set, filter,
// with, call and generation have their own; if has none. Variables set in a scope end with it,
// except attributes of namespaces. A macro sees the scopes around the place where it is defined.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/chat/jinja/runtime.h"
#include "text/chat/jinja/syntax/ast.h"
#include "text/chat/jinja/template.h"
#include "text/chat/jinja/values/objects.h"
#include "text/chat/jinja/values/text_builder.h"

namespace snug::text::jinja {

// The number of a scope's variables that one step pays for searching.
inline constexpr size_t kVariablesPerStep = 64;

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<int, Value>, MeteredAllocator<std::pair<int, Value>>> variables{};
  bool is_kept = false;  // a macro that outlives the scope refers to it

  void set(int name, Value value);
};

class Macro : public Object {
 public:
  Macro(std::string name, const Signature& signature, const Body& body, Scope* scope)
      : name_(std::move(name)), signature_(signature), body_(body), scope_(scope) {}
  const char* type_name() const override { return "Macro"; }
  const std::string& name() const { return name_; }
  const Signature& signature() const { return signature_; }
  const Body& body() const { return body_; }
  Scope* scope() const { return scope_; }

 private:
  std::string name_;
  const Signature& signature_;
  const Body& body_;
  Scope* scope_;
};

class Renderer : public Runtime {
 public:
  // The arguments must outlive the object.
  Renderer(const Syntax& syntax, const Variables& variables, std::time_t now);

  // Throws TemplateError; line() then gives the line of the error.
  Template::Rendering run();
  int line() const { return line_; }

  Value call(const Value& callee, Arguments arguments) override;

 private:
  enum class Flow : uint8_t { next, breaks, continues };

  // Opens a scope for the object's life; the scope is kept longer if a macro refers to it.
  class OpenScope {
   public:
    OpenScope(Renderer& renderer, Scope* parent);
    ~OpenScope();
    OpenScope(const OpenScope&) = delete;
    OpenScope& operator=(const OpenScope&) = delete;
    Scope& operator*() { return *scope_; }

   private:
    Renderer& renderer_;
    Scope* before_;
    std::unique_ptr<Scope> scope_;
  };

  // Functions that run statements.
  Flow run_body(const Body& body);
  Flow run_statement(const Statement& statement);
  Flow run_branch(const Statement& statement);
  Flow run_loop(const Statement& statement);
  Elements loop_items(const Statement& statement);
  Flow run_with(const Statement& statement);
  void run_call(const Statement& statement);
  void run_generation(const Statement& statement);
  // Runs a body in a scope of its own and captures what it writes.
  Flow capture(const Body& body, TextBuilder& text);
  // Fails for what is undefined, where the template is strict.
  void require_defined(const Value& value) const;
  bool holds(const Value& value) const;
  void write(std::string_view text);
  void write(const Value& value);
  void assign(const Target& target, const Value& value);
  Value call_macro(const Macro& macro, Arguments arguments);
  void bind(const Macro& macro, Arguments& arguments, Scope& scope);
  Value macro_value(const Statement& statement, const std::string& name);

  // Functions that evaluate expressions.
  Value evaluate(const Expression& node);
  Value variable(int name);
  Value evaluate_list(const Expression& node);
  Value evaluate_dict(const Expression& node);
  Value evaluate_binary(const Expression& node);
  Value evaluate_unary(const Expression& node);
  Value evaluate_compare(const Expression& node);
  Value evaluate_concatenate(const Expression& node);
  Value evaluate_conditional(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_filter(const Expression& node);
  Value evaluate_test(const Expression& node);
  Value call_expression(const Expression& node, const Value* caller);
  Arguments arguments_of(const Expression& node, const Value* caller);

  const Syntax& syntax_;
  std::vector<const Value*> given_;  // by name; null: not given
  std::vector<Value> globals_;       // by name, filled when first used
  std::vector<std::unique_ptr<Scope>> kept_;
  std::vector<std::unique_ptr<Scope>> spare_;  // unused scopes, kept for reuse
  Scope root_;
  Scope* scope_ = &root_;
  TextBuilder text_;
  TextBuilder* out_ = &text_;
  std::vector<Template::Span> generated_;
  const Value* block_text_ = nullptr;  // the input of a filter that has no input of its own
  int loop_name_ = -1;
  int line_ = 1;
};

}  // namespace snug::text::jinja
