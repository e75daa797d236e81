// JSON records that are too long to be held (record_reader.h), read from the file in small pieces:
// those of the forms tokens and text may be as long as one wishes; the others are refused.
// Each object belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/record/record_form.h"
#include "text/record/record_reader.h"
#include "text/record/token_record.h"

namespace snug::text {

// What of a long record is small.
struct LongRecord {
  RecordForm form = RecordForm::text;
  TokenRecord tokens{};    // tokens: the first `most`
  int64_t text_begin = 0;  // text: the bytes of the file between the quotes
  int64_t text_end = 0;
  std::vector<std::string> unused{};   // fields
  std::vector<std::string> ignored{};  // as in Record
};

// Throws RecordError as parse_record does, and for records of other forms.
LongRecord read_long_record(const RawRecord& raw, const std::string& path, const RecordRules& rules,
                            size_t most);

// Its form alone: no list is read, and of one of tokens no more than up to their key.
RecordForm form_of_long_record(const RawRecord& raw, const std::string& path,
                               const RecordRules& rules);

// A JSON string of the file, piece by piece, its escapes resolved.
class LongString {
 public:
  // `file` must outlive it.
  LongString(RecordFile& file, int64_t begin, int64_t end) : file_(file), at_(begin), end_(end) {}

  // The next piece, in whole characters; false at the end. Throws UserError without a place for
  // broken JSON.
  bool next(std::string& piece);

 private:
  RecordFile& file_;
  int64_t at_;
  int64_t end_;
};

}  // namespace snug::text
