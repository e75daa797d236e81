#include "text/source/delimited_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/shown_text.h"
#include "text/source/conversion_advice.h"
#include "text/source/json_text.h"

namespace snug::text {
namespace {

constexpr int kEndOfTable = std::char_traits<char>::eof();

// What separates the cells of a .csv: a comma, or where the first row has none outside of quotes, a
// semicolon or a tab, as spreadsheets write them where the comma stands in numbers.
char separator_of(std::string_view begin) {
  bool is_quoted = false;
  char other = ',';
  for (const char c : begin) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == ',') return ',';
    if (c == '\n' || c == '\r') break;
    if (other == ',' && (c == ';' || c == '\t')) other = c;
  }
  return other;
}

}  // namespace

void DelimitedText::fail(const std::string& what, int line) const {
  throw base::UserError(what, {path_, line, 0});
}

int DelimitedText::peek() {
  if (at_ == block_.size()) {
    at_ = 0;
    if (!bytes_->next(block_)) block_.clear();
    if (block_.empty()) return kEndOfTable;
  }
  return static_cast<unsigned char>(block_[at_]);
}

int DelimitedText::get() {
  const int c = peek();
  if (c == kEndOfTable) return c;
  ++at_;
  ++row_bytes_;
  if (c == '\n') ++line_;
  return c;
}

// Takes characters up to one of `signs`, as far as the block goes. What a row has beyond
// kMaxRowBytes is passed over.
void DelimitedText::take_until(std::string_view signs) {
  const std::string_view left = std::string_view(block_).substr(at_);
  const std::string_view taken = left.substr(0, left.find_first_of(signs));
  at_ += taken.size();
  row_bytes_ += taken.size();
  line_ += static_cast<int>(std::ranges::count(taken, '\n'));
  if (row_bytes_ <= kMaxRowBytes) cell_ += taken;
}

void DelimitedText::read_quoted() {
  get();
  while (true) {
    const int c = peek();
    if (c == kEndOfTable)
      fail("a quote is opened in the row that begins here, and not closed", row_line_);
    if (c != '"') {
      take_until("\"");
      continue;
    }
    get();
    if (peek() != '"') return;
    get();
    if (row_bytes_ <= kMaxRowBytes) cell_ += '"';
  }
}

// Takes the end of a line, of one or two characters.
void DelimitedText::end_line() {
  if (get() != '\r') return;
  if (peek() == '\n')
    get();
  else
    ++line_;
}

// False where the row ends with the cell.
bool DelimitedText::read_cell() {
  const std::array ends{separator_, '\n', '\r'};
  cell_.clear();
  if (peek() == '"') read_quoted();
  while (true) {
    const int c = peek();
    if (c == separator_) {
      get();
      return true;
    }
    if (c == kEndOfTable || c == '\n' || c == '\r') return false;
    take_until({ends.data(), ends.size()});
  }
}

// False at the end of the table; an empty line is a row without cells.
bool DelimitedText::read_row() {
  row_line_ = line_;
  row_bytes_ = 0;
  cell_count_ = 0;
  cells_.clear();
  if (!is_begun_) begin_table();
  if (peek() == kEndOfTable) return false;
  const size_t most = names_.empty() ? kMaxColumns : names_.size();
  for (bool goes_on = true; goes_on;) {
    goes_on = read_cell();
    if (!goes_on && row_bytes_ == 0) break;
    if (cell_count_++ < most) cells_.push_back(cell_);
  }
  end_line();
  return true;
}

void DelimitedText::begin_table() {
  is_begun_ = true;
  if (peek() == kEndOfTable) return;
  if (const auto advice = encoding_advice(path_, block_)) fail(*advice, 0);
  if (const auto advice = content_advice(path_, block_)) fail(*advice, 0);
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // that editors on Windows put first
  if (block_.starts_with(kMark)) at_ = kMark.size();
  if (separator_ == ',') separator_ = separator_of(std::string_view(block_).substr(at_));
}

void DelimitedText::take_names() {
  if (row_bytes_ > kMaxRowBytes || cell_count_ > kMaxColumns)
    fail(fmt::format("the first row, which names the columns, has {} bytes and {} cells; at most "
                     "{} and {} are read: is a quote not closed?",
                     row_bytes_, cell_count_, kMaxRowBytes, kMaxColumns),
         row_line_);
  for (const std::string& cell : cells_) {
    std::string name;
    append_json_string(name, cell);
    name += ':';
    if (std::ranges::find(names_, name) != names_.end())
      fail(fmt::format("two columns are called '{}'; rename one of them", base::shown_text(cell)),
           row_line_);
    names_.push_back(std::move(name));
  }
}

// Nothing of a row that is whole.
std::string DelimitedText::why_unread() const {
  if (row_bytes_ > kMaxRowBytes)
    return fmt::format("the row has {} bytes, and {} are read; is a quote not closed?", row_bytes_,
                       kMaxRowBytes);
  if (cell_count_ == names_.size()) return "";
  return fmt::format(
      "the row has {} cells, and the first row names {}; quote cells that hold a {} or line breaks",
      cell_count_, names_.size(), separator_ == ',' ? "comma" : "tab");
}

void DelimitedText::write_row(std::string& piece) {
  for (; written_lines_ < row_line_; ++written_lines_) piece += '\n';
  ++written_lines_;
  if (const std::string why = why_unread(); !why.empty()) return append_unread_row(piece, why);
  for (size_t i = 0; i < cells_.size(); ++i) {
    piece += i == 0 ? '{' : ',';
    piece += names_[i];
    append_json_string(piece, cells_[i]);
  }
  piece += "}\n";
}

bool DelimitedText::next(std::string& piece) {
  piece.clear();
  while (static_cast<int64_t>(piece.size()) < kPieceBytes && read_row()) {
    if (cell_count_ == 0) continue;
    if (names_.empty())
      take_names();
    else
      write_row(piece);
  }
  return !piece.empty();
}

}  // namespace snug::text
