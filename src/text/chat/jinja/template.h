// A chat template: a program in Jinja, the language of Hugging Face's chat templates, parsed once
// and run for each conversation. Its output is that of jinja2 as transformers configures it
// (trim_blocks, lstrip_blocks, loop controls, {% generation %}, raise_exception, strftime_now,
// tojson without escapes). Unsupported constructs are refused with their name and line
// (docs/chat_templates.md). Immutable; render may be called from any thread.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

struct Syntax;

// How a source is read: as transformers configures jinja2 for chat templates, or otherwise.
struct TemplateRules {
  std::string_view subject = "chat template";  // in messages
  // trim_blocks and lstrip_blocks, and the source's last line break is left out.
  bool trims_lines = true;
  // What is undefined is an error where it is printed, looped over or tested for truth
  // (StrictUndefined).
  bool is_strict = false;
};

using Variables = std::vector<std::pair<std::string, Value>>;

class Template {
 public:
  // A range of bytes.
  struct Span {
    size_t begin = 0;
    size_t end = 0;
  };
  struct Rendering {
    std::string text;
    std::vector<Span> generated;  // output between {% generation %} and {% endgeneration %}
  };

  // `name`: the source's name in messages. Throws UserError with the line.
  Template(std::string_view source, std::string name, const TemplateRules& rules = {});
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  bool marks_generation() const;

  // `now`: the time for strftime_now, in local time. Throws UserError with the line, also for
  // errors that the template itself raises.
  Rendering render(const Variables& variables, std::time_t now) const;

 private:
  std::string name_;
  std::string subject_;
  std::unique_ptr<const Syntax> syntax_;
};

}  // namespace snug::text::jinja
