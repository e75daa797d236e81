// What a task says of a document in a line of its file (doc_to_text: ...): a field's name, a
// template in Jinja as lm-evaluation-harness renders it, a number, or a list of texts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/chat/jinja/template.h"

namespace snug::generate {

// A document of a task: its fields, and its place in a file.
struct TaskDocument {
  text::jinja::Value fields{};  // a dictionary
  base::Location where{};
};

class TaskText {
 public:
  TaskText() = default;  // the empty text
  // `key`: as the task's file has it, for messages.
  TaskText(std::string key, std::string source, const base::Location& where);
  TaskText(std::string key, int64_t number);
  TaskText(std::string key, std::vector<std::string> list);

  // The document's field of this name, or what the template makes of the document, which is a text.
  // Throws UserError, at the document's place, for a field that the document lacks.
  text::jinja::Value of(const TaskDocument& document) const;

  // The same where only a text will do. Throws UserError for anything else.
  std::string text_of(const TaskDocument& document) const;

  bool is_field_of(const TaskDocument& document) const;

 private:
  std::string key_;
  std::string source_;
  std::optional<int64_t> number_;
  std::optional<std::vector<std::string>> list_;
  std::shared_ptr<const text::jinja::Template> template_;
};

// "doc_to_text is a number": what is wrong with what a task says of a document.
[[noreturn]] void fail_at(const TaskDocument& document, const std::string& problem);

}  // namespace snug::generate
