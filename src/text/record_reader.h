// Reads the records of a data file one by one, with the line each begins at: a JSON array, JSON
// lines, or plain text. Holds one record in memory, not the file.
// One reader, one thread.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

namespace snug::text {

struct RawRecord {
  std::string text;    // JSON, or for plain text the text itself
  int64_t number = 0;  // from 1
  int line = 0;        // from 1, where it begins
};

class RecordReader {
 public:
  enum class Format { json_array, json_lines, plain_text };

  // The format is seen from the name (.json, .jsonl, .txt) and, for .json and .jsonl, from the
  // first character: [ opens an array, { begins a line. Throws UserError.
  explicit RecordReader(const std::string& path);

  // Plain text is cut at every `separator` (the text of the end-of-text token); without one, or
  // where it is empty, it is one record. Call before the first record is read.
  void separate_by(std::string separator) { separator_ = std::move(separator); }

  Format format() const { return format_; }

  // False at the end. Throws UserError for a broken array or text that is not UTF-8.
  bool next(RawRecord& record);

 private:
  bool next_element(RawRecord& record);
  bool next_line(RawRecord& record);
  bool next_text(RawRecord& record);
  void take_element(RawRecord& record);
  int skip_space();
  int get();
  [[noreturn]] void fail(const std::string& message, int line) const;

  std::string path_;
  std::string separator_;
  std::ifstream stream_;
  Format format_ = Format::plain_text;
  int64_t number_ = 0;
  int line_ = 1;  // of the next character
  bool at_first_element_ = true;
  bool at_end_ = false;
};

}  // namespace snug::text
