#include "text/record/dataset_audit.h"

namespace snug::text {

void DatasetAudit::add(const DatasetAudit& other) {
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
  lengths.add_all(other.lengths);
}

}  // namespace snug::text
