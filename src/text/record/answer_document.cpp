#include "text/record/answer_document.h"

#include <algorithm>
#include <vector>

namespace snug::text {

Document answer_document(const Record& record, const Tokenizer& tokenizer) {
  std::vector<Part> parts;
  if (record.form != RecordForm::text) parts.push_back({record.prompt, -1, false});
  parts.push_back({record.answer, -1, true});
  Document document = tokenize_parts(tokenizer, parts, SpecialTokens::around);
  if (std::find(document.trained.begin(), document.trained.end(), 1) == document.trained.end())
    return {};
  // Some tokenizers end every text in EOS themselves.
  const int32_t eos = tokenizer.eos_id().value();
  if (document.ids.back() != eos) {
    tokenizer.require_rows({&eos, 1});
    document.ids.push_back(eos);
    document.trained.push_back(1);
  }
  document.trained.back() = 1;
  return document;
}

}  // namespace snug::text
