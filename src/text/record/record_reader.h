// Reads the records of a data file one by one, with the line each begins at: a JSON array, JSON
// lines, or plain text, whatever the file is kept as (source/record_file.h). What it holds is
// bounded, whatever the file's form: one record of at most kMaxRecordBytes. Of a longer JSON record
// it says where in the file it is (long_record.h reads it), and longer plain text comes in pieces.
// One reader, one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "text/record/list_in_object.h"
#include "text/source/record_file.h"

namespace snug::text {

// See kReadingBytes of dataset.h for what these amount to.
inline constexpr size_t kMaxRecordBytes = size_t{2} << 20;
inline constexpr size_t kTextPieceBytes = size_t{256} << 10;

struct RawRecord {
  std::string text;      // JSON, or for plain text the text itself; empty where is_long
  int64_t number = 0;    // from 1
  int line = 0;          // from 1, where it begins
  bool is_long = false;  // JSON of more than kMaxRecordBytes: the bytes [begin, end) of `file`
  RecordFile* file = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  // Why it cannot be read, where it cannot: the text is empty then, and the next record follows.
  std::string problem{};
  // Plain text in pieces of whole characters: what came before is of the same text, more follows.
  bool continues = false;
  bool is_open = false;
};

class RecordReader {
 public:
  enum class Format { json_array, json_lines, plain_text };

  // The format is seen from the name and, unless it is that of plain text, from the first
  // character: [ opens an array, { begins a line, or in a .json file an object that holds the array
  // (list_in_object.h). Of a table with columns of their own (Parquet) those called as in `unread`
  // need not be read, and are null. Throws UserError.
  explicit RecordReader(const std::string& path, std::span<const std::string> unread = {});

  // Plain text is cut at every `separator` (the text of the end-of-text token); without one, or
  // where it is empty, it is one record. Call before the first record is read.
  void separate_by(std::string separator) { separator_ = std::move(separator); }

  Format format() const { return format_; }
  // The list whose items the records are, where the file is an object that holds it.
  const std::optional<ListInObject>& list() const { return list_; }

  // False at the end. Throws UserError for a broken array, or plain text that is not UTF-8.
  bool next(RawRecord& record);

 private:
  void find_list();
  bool next_element(RawRecord& record);
  bool next_line(RawRecord& record);
  bool next_text(RawRecord& record);
  bool read_piece(std::string& text);
  void check_line_ends() const;
  void take_element(RawRecord& record);
  void keep(RawRecord& record, std::string_view part);
  void take_problem(RawRecord& record);
  void check_utf8(RawRecord& record, std::string_view text);
  void fill();
  std::string_view unread() const;
  int peek();
  int get();
  int skip_space();
  [[noreturn]] void fail(const std::string& message, int line) const;

  std::string path_;
  std::string separator_;
  RecordFile file_;
  std::string block_;  // what was read last
  int64_t block_begin_ = 0;
  bool is_whole_ = false;  // nothing follows the block
  Format format_ = Format::plain_text;
  std::optional<ListInObject> list_;
  std::string held_;  // the end of a piece of text, which may be a part of a separator
  int64_t number_ = 0;
  int64_t offset_ = 0;  // of the next character
  int line_ = 1;        // and its line
  bool at_first_element_ = true;
  bool at_end_ = false;
  bool text_is_open_ = false;
};

}  // namespace snug::text
