// The rows of a table of cells (CSV, TSV; RFC 4180) as JSON lines: an object for each row, whose
// keys are the cells of the first row and whose values are texts. A row stands in the line that it
// begins at in the table, so that places in messages are those of the table. Lines end as Unix,
// Windows or older Macintoshes end them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/source/byte_stream.h"

namespace snug::text {

class DelimitedText : public ByteStream {
 public:
  // `separator`: a comma or a tab. A cell may stand in double quotes, and then hold separators,
  // line breaks and, doubled, quotes.
  DelimitedText(std::unique_ptr<ByteStream> bytes, char separator, std::string path)
      : bytes_(std::move(bytes)), separator_(separator), path_(std::move(path)) {}

  // A row of more or fewer cells than the first one, or of more than kMaxRowBytes, becomes a text
  // that says so (json_text.h). Throws UserError for a quote that is not closed, a name that is
  // there twice, a first row that is too long, and what is no table whatever its name.
  bool next(std::string& piece) override;

  static constexpr size_t kMaxRowBytes = size_t{2} << 20;
  static constexpr size_t kMaxColumns = 4096;

 private:
  bool read_row();
  bool read_cell();
  void read_quoted();
  void end_line();
  int peek();
  int get();
  void take_until(std::string_view signs);
  void begin_table();
  void take_names();
  void write_row(std::string& piece);
  std::string why_unread() const;
  [[noreturn]] void fail(const std::string& what, int line) const;

  std::unique_ptr<ByteStream> bytes_;
  char separator_;
  std::string path_;
  std::string block_;
  size_t at_ = 0;
  bool is_begun_ = false;
  int line_ = 1;
  int written_lines_ = 1;           // the line of the text that comes next
  std::vector<std::string> names_;  // as JSON, with the colon
  // The row that was read last.
  int row_line_ = 1;  // where it begins
  size_t row_bytes_ = 0;
  size_t cell_count_ = 0;
  std::string cell_;
  std::vector<std::string> cells_;  // no more than are to be there
};

}  // namespace snug::text
