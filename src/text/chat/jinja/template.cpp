#include "text/chat/jinja/template.h"

#include "base/error.h"
#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/renderer.h"
#include "text/chat/jinja/syntax/lexer.h"
#include "text/chat/jinja/syntax/parser.h"

namespace snug::text::jinja {

Template::Template(std::string_view source, std::string name, const TemplateRules& rules)
    : name_(std::move(name)), subject_(rules.subject) {
  try {
    auto syntax = std::make_unique<Syntax>(parse_template(source, rules.trims_lines));
    syntax->is_strict = rules.is_strict;
    syntax_ = std::move(syntax);
  } catch (const SyntaxError& error) {
    throw base::UserError(subject_ + ": " + error.message, {name_, error.line, 0});
  }
}

Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

bool Template::marks_generation() const { return syntax_->has_generation; }

Template::Rendering Template::render(const Variables& variables, std::time_t now) const {
  Renderer renderer(*syntax_, variables, now);
  try {
    return renderer.run();
  } catch (const TemplateError& error) {
    throw base::UserError(subject_ + ": " + error.what(), {name_, renderer.line(), 0});
  }
}

}  // namespace snug::text::jinja
