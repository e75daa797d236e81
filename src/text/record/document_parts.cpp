#include "text/record/document_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "text/record/answer_document.h"

namespace snug::text {
namespace {

Document document_of(const std::string& text, const Tokenizer& tokenizer) {
  return tokenize_parts(tokenizer, std::array{Part{text, -1, true}}, SpecialTokens::around);
}

}  // namespace

void require_parts(RecordForm form, const std::string& path, int line) {
  if (form == RecordForm::alpaca || form == RecordForm::prompt_completion ||
      form == RecordForm::tokens)
    return;
  throw base::UserError(
      fmt::format(
          "the records are of the form {}, which is not built for encoder-decoders; give "
          "prompt and completion, input and target, instruction and output, or input_ids and "
          "labels",
          name_of(form)),
      {path, line, 0});
}

CutParts cut_parts(std::vector<int32_t> encoder_ids, const Document& decoder,
                   const DatasetOptions& options, int32_t eos) {
  CutParts cut;
  const auto most = static_cast<size_t>(options.encoder_length);
  const size_t size = std::min(decoder.ids.size(), static_cast<size_t>(options.max_length));
  cut.lost = static_cast<int64_t>(decoder.ids.size() - size);
  if (encoder_ids.size() > most) {
    cut.lost += static_cast<int64_t>(encoder_ids.size() - most);
    const int32_t last = encoder_ids.back();
    encoder_ids.resize(most);
    if (last == eos) encoder_ids.back() = last;
  }
  cut.encoder_ids = std::move(encoder_ids);
  cut.ids = std::span(decoder.ids).first(size);
  cut.trained = std::span(decoder.trained).first(size);
  return cut;
}

DocumentParts document_parts(const Record& record, const Tokenizer& tokenizer,
                             bool repeats_prompt) {
  DocumentParts parts;
  parts.encoder_ids = document_of(record.prompt, tokenizer).ids;
  if (repeats_prompt) {
    parts.decoder = answer_document(record, tokenizer);
    return parts;
  }
  Document answer = document_of(record.answer, tokenizer);
  if (std::ranges::count(answer.trained, 1) == 0) return parts;
  const int32_t eos = tokenizer.eos_id().value();
  if (answer.ids.back() != eos) {
    tokenizer.require_rows({&eos, 1});
    answer.ids.push_back(eos);
  }
  answer.trained.assign(answer.ids.size(), 1);
  parts.decoder = std::move(answer);
  return parts;
}

}  // namespace snug::text
