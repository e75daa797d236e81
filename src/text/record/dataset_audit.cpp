#include "text/record/dataset_audit.h"

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

}  // namespace snug::text
