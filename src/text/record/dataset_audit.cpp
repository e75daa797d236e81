#include "text/record/dataset_audit.h"

#include <fmt/format.h>

namespace snug::text {

void DatasetAudit::add(const DatasetAudit& other) {
  if (form != other.form && form.find(other.form) == std::string::npos)
    form += " and " + other.form;
  if (chat_template.empty()) {
    chat_template = other.chat_template;
    template_source = other.template_source;
  }
  if (chat_field.empty()) chat_field = other.chat_field;
  ends.add(other.ends);
  for (const auto count : {&DatasetAudit::records, &DatasetAudit::empty, &DatasetAudit::examples,
                           &DatasetAudit::desirable, &DatasetAudit::documents,
                           &DatasetAudit::tokens, &DatasetAudit::trained_tokens,
                           &DatasetAudit::truncated, &DatasetAudit::cut_tokens, &DatasetAudit::bad})
    this->*count += other.*count;
  longest = std::max(longest, other.longest);
  if (!bad_told.empty() && !other.bad_told.empty()) bad_told += '\n';
  bad_told += other.bad_told;
  lengths.add_all(other.lengths);
}

std::string describe(const DatasetAudit& audit, const std::string& path) {
  std::string text = fmt::format(
      "{}: {} records of form {}{}{}{}, {} documents, {} tokens, {} of them trained; longest {} "
      "tokens; {} documents cut to max_length ({} tokens lost)",
      path, audit.records, audit.form,
      audit.chat_field.empty() ? ""
                               : fmt::format(", conversations for their '{}'", audit.chat_field),
      audit.chat_template.empty() ? "" : fmt::format(" ({} template)", audit.chat_template),
      audit.examples == 0
          ? ""
          : fmt::format(", {} examples ({} of them desirable)", audit.examples, audit.desirable),
      audit.documents, audit.tokens, audit.trained_tokens, audit.longest, audit.truncated,
      audit.cut_tokens);
  if (!audit.list_told.empty()) text += "; " + audit.list_told;
  if (!audit.idle_template.empty())
    text += fmt::format(
        "; its texts stand as they are, no chat template is used ({}): fields={{question: NAME{}}} "
        "makes conversations of them",
        audit.idle_template, audit.form == "preference" ? "" : ", answer: NAME");
  if (audit.empty > 0) text += fmt::format("; {} texts without a token left out", audit.empty);
  if (const std::string unwritten = audit.unwritten.text(); !unwritten.empty())
    text += "; " + unwritten;
  if (const std::string fields = audit.unused.list(); !fields.empty())
    text += fmt::format("; fields that are not used: {}", fields);
  if (const std::string unmet = unmet_text(audit.unmet); !unmet.empty()) text += "; " + unmet;
  if (!audit.bad_told.empty()) text += "\n" + audit.bad_told;
  return text;
}

}  // namespace snug::text
