#include "generate/evaluation/task_text.h"

#include "text/chat/jinja/allowance.h"
#include "text/chat/jinja/values/value.h"

namespace snug::generate {
namespace {

using text::jinja::List;
using text::jinja::Value;

text::jinja::Variables variables_of(const TaskDocument& document) {
  text::jinja::Variables variables;
  for (const auto& [name, value] : document.fields.as_dict().entries())
    variables.emplace_back(name.as_text(), value);
  return variables;
}

}  // namespace

void fail_at(const TaskDocument& document, const std::string& problem) {
  throw base::UserError(problem, document.where);
}

TaskText::TaskText(std::string key, std::string source, const base::Location& where)
    : key_(std::move(key)), source_(std::move(source)) {
  const text::jinja::TemplateRules rules{.subject = key_, .trims_lines = false, .is_strict = true};
  try {
    template_ = std::make_shared<const text::jinja::Template>(source_, "", rules);
  } catch (const base::UserError& error) {
    // The line that the template counts is one of its own text.
    throw base::UserError(std::string("this template is not valid: ") + error.what(), where);
  }
}

TaskText::TaskText(std::string key, int64_t number) : key_(std::move(key)), number_(number) {}

TaskText::TaskText(std::string key, std::vector<std::string> list)
    : key_(std::move(key)), list_(std::move(list)) {}

bool TaskText::is_field_of(const TaskDocument& document) const {
  return !source_.empty() && document.fields.as_dict().find(source_) != nullptr;
}

Value TaskText::of(const TaskDocument& document) const {
  if (number_) return Value::integer(*number_);
  if (list_) {
    List items;
    for (const std::string& text : *list_) items.push_back(Value::text(text));
    return Value::list(std::move(items));
  }
  if (source_.empty()) return Value::text("");
  if (const Value* field = document.fields.as_dict().find(source_)) return *field;
  const text::jinja::Allowance allowance;
  try {
    return Value::text(template_->render(variables_of(document), 0).text);
  } catch (const base::UserError& error) {
    fail_at(document, error.what());
  }
}

std::string TaskText::text_of(const TaskDocument& document) const {
  const Value value = of(document);
  if (!value.is(Value::Kind::text))
    fail_at(document, key_ + " is " + value.type_name() + ", and a text is needed here");
  return value.as_text();
}

}  // namespace snug::generate
