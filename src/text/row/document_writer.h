// Turns the tokenized records of a source into documents that it adds to a store (cut to
// max_length, in windows, in pairs, or with mismatched answers), as dataset.h describes for each
// form, and counts them in the audit. Not thread-safe; records are added in the order of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/record/dataset_audit.h"
#include "text/record/mismatched_answers.h"
#include "text/record/record_tokens.h"
#include "text/row/dataset_options.h"
#include "text/row/document_store.h"
#include "text/row/length_advice.h"

namespace snug::text {

class DocumentWriter {
 public:
  // The arguments must outlive the object.
  DocumentWriter(const std::string& path, const DatasetOptions& options, DatasetAudit& audit,
                 DocumentStore& documents)
      : path_(path),
        options_(options),
        audit_(audit),
        documents_(documents),
        documents_before_(documents.size()),
        tokens_before_(documents.tokens()) {}

  // To be called before the first record. `eos`: the tokenizer's, if the records need one.
  void begin(RecordForm form, int32_t eos);

  // Throws RecordError if max_length leaves nothing of the record to learn.
  void write(int64_t number, int line, TokenizedRecord& record);
  // Adds a document unchanged, such as a window of a long text.
  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained, int8_t label = 0);

  // To be called after the last record, and counts what was added. Throws UserError if answers of
  // other records are asked for and there are none.
  void finish();

 private:
  void write_windows(const Document& document);
  void write_cut(int64_t number, int line, const TokenizedRecord& record);
  void write_parts(int64_t number, int line, const TokenizedRecord& record);
  void write_pair(int64_t number, int line, const TokenizedRecord& record);
  void write_answers(int64_t number, int line, std::vector<LabelledAnswer>& answers);
  [[noreturn]] void fail_prompt(int64_t number, int line, const NeededLength& needed) const;
  void add_beginning(const Document& document, int64_t tokens);
  void add_cut(const Document& document, int8_t label);
  void add_example(const LabelledAnswer& example, const Document& mismatched);
  // Counts what a document of so many tokens loses, of which it holds `held`.
  void count_cut(int64_t tokens, int64_t held);
  // Throws RecordError for a record that is longer than max_length.
  void require_whole(int64_t number, int line, const TokenizedRecord& record) const;

  const std::string& path_;
  const DatasetOptions& options_;
  DatasetAudit& audit_;
  RecordForm form_ = RecordForm::text;
  int32_t eos_ = -1;
  std::optional<MismatchedAnswers> mismatched_;  // for answers with labels
  DocumentStore& documents_;
  int64_t documents_before_;
  int64_t tokens_before_;
};

}  // namespace snug::text
