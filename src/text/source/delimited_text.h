// The rows of a table of cells (CSV, TSV; RFC 4180) as JSON lines: an object for each row, whose
// keys are the cells of the first row and whose values are texts. A row stands in the line that it
// begins at in the table, so that places in messages are those of the table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/source/byte_stream.h"

namespace snug::text {

class DelimitedText : public ByteStream {
 public:
  // `separator`: a comma or a tab. A cell may stand in double quotes, and then hold separators,
  // line breaks and, doubled, quotes.
  DelimitedText(std::unique_ptr<ByteStream> bytes, char separator, std::string path)
      : bytes_(std::move(bytes)), separator_(separator), path_(std::move(path)) {}

  // Throws UserError for a row of more or fewer cells than the first one, a quote that is not
  // closed, a name that is there twice, and a row of more than kMaxRowBytes.
  bool next(std::string& piece) override;

  static constexpr size_t kMaxRowBytes = size_t{2} << 20;

 private:
  bool read_row();
  int peek();
  int get();
  void read_quoted(std::string& cell);
  void take_names();
  void write_row(std::string& piece);
  [[noreturn]] void fail(const std::string& what, int line) const;

  std::unique_ptr<ByteStream> bytes_;
  char separator_;
  std::string path_;
  std::string block_;
  size_t at_ = 0;
  int line_ = 1;
  int row_line_ = 1;       // where the row begins
  int written_lines_ = 1;  // the line of the text that comes next
  size_t row_bytes_ = 0;
  std::vector<std::string> names_;  // as JSON
  std::vector<std::string> cells_;
};

}  // namespace snug::text
