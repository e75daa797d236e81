// A chat template: a program in Jinja, the language of Hugging Face's chat templates, read once and
// run for each conversation. It writes what jinja2 writes as transformers sets it up (trim_blocks,
// lstrip_blocks, loop controls, {% generation %}, raise_exception, strftime_now, tojson without
// escapes); what is not supported is refused by its name and line (docs/chat_templates.md).
// Immutable; render may be called from any thread.
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

using Variables = std::vector<std::pair<std::string, Value>>;

class Template {
 public:
  // A span of bytes.
  struct Span {
    size_t begin = 0;
    size_t end = 0;
  };
  struct Rendering {
    std::string text;
    std::vector<Span> generated;  // what stood between {% generation %} and {% endgeneration %}
  };

  // `name` stands for the source in messages. Throws UserError with the line.
  Template(std::string_view source, std::string name);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  bool marks_generation() const;

  // `now` is what strftime_now tells, in local time. Throws UserError with the line, for what the
  // template itself raises, too.
  Rendering render(const Variables& variables, std::time_t now) const;

 private:
  std::string name_;
  std::unique_ptr<const Syntax> syntax_;
};

}  // namespace snug::text::jinja
