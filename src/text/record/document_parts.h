// The two parts of a record that an encoder-decoder learns from, as transformers' tokenizers make
// input_ids and labels of them: the prompt, which the encoder reads, and the answer. Each is a text
// of its own, with the special tokens that the tokenizer adds to one, and the answer ends in EOS.
// A decoder that repeats the prompt has prompt and answer as one text, of which it learns the
// answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/record/document.h"
#include "text/record/record_form.h"
#include "text/row/dataset_options.h"

namespace snug::text {

struct DocumentParts {
  std::vector<int32_t> encoder_ids;
  Document decoder;  // empty: the answer has no token
};

// Throws UserError for records of a form that has no such parts.
void require_parts(RecordForm form, const std::string& path, int line);

// What of both parts is within the lengths that the options give, and how many tokens that leaves
// out. An encoder's part that ended in EOS still does, as transformers' truncation has it.
struct CutParts {
  std::vector<int32_t> encoder_ids;
  std::span<const int32_t> ids;  // of the document that was cut, which must outlive them
  std::span<const uint8_t> trained;
  int64_t lost = 0;
};
CutParts cut_parts(std::vector<int32_t> encoder_ids, const Document& decoder,
                   const DatasetOptions& options, int32_t eos);

// The parts of a record with prompt and answer. The tokenizer has an EOS token. Pure; any thread.
DocumentParts document_parts(const Record& record, const Tokenizer& tokenizer,
                             bool repeats_prompt = false);

}  // namespace snug::text
