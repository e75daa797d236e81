#include "text/source/delimited_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/shown_text.h"

namespace snug::text {
namespace {

constexpr int kEndOfTable = std::char_traits<char>::eof();

// Bytes that are no UTF-8 stay: what reads the text says so, with the line.
std::string as_json(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    std::string quoted = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < ' ' || c == '"' || c == '\\')
        quoted += fmt::format("\\u{:04x}", byte);
      else
        quoted += c;
    }
    return quoted + '"';
  }
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
  if (c == '\n') ++line_;
  if (++row_bytes_ > kMaxRowBytes)
    fail(fmt::format("the row that begins here has more than {} bytes; is a quote not closed?",
                     kMaxRowBytes),
         row_line_);
  return c;
}

void DelimitedText::read_quoted(std::string& cell) {
  get();
  for (int c = get();; c = get()) {
    if (c == kEndOfTable)
      fail("a quote is opened in the row that begins here, and not closed", row_line_);
    if (c == '"') {
      if (peek() != '"') return;
      get();
    }
    cell += static_cast<char>(c);
  }
}

// False at the end of the table; an empty line is a row without cells.
bool DelimitedText::read_row() {
  row_line_ = line_;
  row_bytes_ = 0;
  cells_.clear();
  if (peek() == kEndOfTable) return false;
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // that editors on Windows put first
  if (line_ == 1 && names_.empty() && block_.starts_with(kMark)) at_ = kMark.size();
  std::string cell;
  for (bool is_begun = false;; is_begun = true) {
    const int c = peek();
    const bool ends = c == kEndOfTable || c == '\n';
    if (ends || c == separator_) {
      get();
      if (ends && !cell.empty() && cell.back() == '\r') cell.pop_back();
      if (!ends || is_begun || !cells_.empty()) cells_.push_back(std::move(cell));
      if (ends) return true;
      cell.clear();
      is_begun = true;
    } else if (c == '"' && cell.empty()) {
      read_quoted(cell);
    } else {
      cell += static_cast<char>(get());
    }
  }
}

void DelimitedText::take_names() {
  for (const std::string& cell : cells_) {
    std::string name = as_json(cell);
    if (std::ranges::find(names_, name) != names_.end())
      fail(fmt::format("two columns are called '{}'; rename one of them", base::shown_text(cell)),
           row_line_);
    names_.push_back(std::move(name));
  }
}

void DelimitedText::write_row(std::string& piece) {
  if (cells_.size() != names_.size())
    fail(fmt::format("the row that begins here has {} cells, and the first row names {}; quote "
                     "cells that hold a {} or line breaks",
                     cells_.size(), names_.size(), separator_ == ',' ? "comma" : "tab"),
         row_line_);
  for (; written_lines_ < row_line_; ++written_lines_) piece += '\n';
  for (size_t i = 0; i < cells_.size(); ++i)
    piece += fmt::format("{}{}:{}", i == 0 ? "{" : ",", names_[i], as_json(cells_[i]));
  piece += "}\n";
  ++written_lines_;
}

bool DelimitedText::next(std::string& piece) {
  piece.clear();
  while (static_cast<int64_t>(piece.size()) < kPieceBytes && read_row()) {
    const bool is_blank = cells_.empty() || (cells_.size() == 1 && cells_[0].empty());
    if (names_.empty()) {
      if (!is_blank) take_names();
    } else if (!is_blank) {
      write_row(piece);
    }
  }
  return !piece.empty();
}

}  // namespace snug::text
