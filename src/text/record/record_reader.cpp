#include "text/record/record_reader.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ending.h"
#include "base/json_parser.h"
#include "text/source/conversion_advice.h"
#include "text/unicode/blank.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

constexpr int64_t kReadBytes = int64_t{64} << 10;
constexpr int kEnd = std::char_traits<char>::eof();

int count_lines(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// Finds where a JSON value ends that begins with a brace, a bracket or a quote.
class ValueEnd {
 public:
  bool is_reached() const { return is_reached_; }

  // Of what follows all that is of the value.
  std::string_view take(std::string_view text) {
    size_t taken = 0;
    while (taken < text.size() && !is_reached_) step(text[taken++]);
    return text.substr(0, taken);
  }

 private:
  void step(char c) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (in_string_) {
      is_escaped_ = c == '\\';
      in_string_ = c != '"';
      is_reached_ = !in_string_ && depth_ == 0;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      is_reached_ = --depth_ == 0;
    }
  }

  int64_t depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool is_reached_ = false;
};

// Of a number, true, false or null in a list.
bool ends_word(int c) { return is_space(c) || c == ',' || c == ']' || c == kEnd; }

}  // namespace

RecordReader::RecordReader(const std::string& path, std::span<const std::string> unread)
    : path_(path), file_(path, unread) {
  fill();
  if (const auto advice = encoding_advice(path, block_)) fail(*advice, 0);
  // Editors on Windows put a byte order mark before the text.
  if (std::string_view(block_).starts_with("\xEF\xBB\xBF")) offset_ = 3;
  if (file_.is_plain_text()) {
    const auto text = std::string_view(block_).substr(static_cast<size_t>(offset_));
    if (const auto advice = text_advice(text, is_whole_)) fail(*advice, 0);
    return;
  }
  // No JSON begins so; text may.
  if (const auto advice = content_advice(path, block_)) fail(*advice, 0);
  const int first = skip_space();
  format_ = first == '[' ? Format::json_array : Format::json_lines;
  if (first == kEnd) at_end_ = true;
  if (first == '{' && base::file_ending(path).contents == ".json") find_list();
  if (format_ == Format::json_array) get();
  if (format_ == Format::json_lines) check_line_ends();
}

// JSON itself may have such line ends between its parts, so records cannot be told apart by them.
void RecordReader::check_line_ends() const {
  if (block_.find('\n') != std::string::npos || block_.find("}\r{") == std::string::npos) return;
  fail(
      "its lines end in carriage returns alone; convert it: tr '\\r' '\\n' < FILE > "
      "CONVERTED.jsonl",
      0);
}

// Reads the file to the end, where it is one object, and goes back to its beginning or its list's.
void RecordReader::find_list() {
  const FilePlace begin{offset_, line_};
  list_ = find_list_in_object({[this] { return get(); },
                               [this] {
                                 return FilePlace{offset_, line_};
                               }},
                              [&](const std::string& what) { fail(what, begin.line); });
  const FilePlace place = list_ ? list_->begin : begin;
  if (list_) format_ = Format::json_array;
  offset_ = place.offset;
  line_ = place.line;
  fill();
}

void RecordReader::fail(const std::string& message, int line) const {
  throw base::UserError(message, {path_, line, 0});
}

// Reads the block that the next character is in.
void RecordReader::fill() {
  block_begin_ = offset_;
  block_.resize(kReadBytes);
  block_.resize(static_cast<size_t>(file_.read_at(offset_, block_.data(), kReadBytes)));
  is_whole_ = block_.size() < static_cast<size_t>(kReadBytes);
}

// What of the block comes next; empty only at the end, once peek() has looked.
std::string_view RecordReader::unread() const {
  return std::string_view(block_).substr(static_cast<size_t>(offset_ - block_begin_));
}

int RecordReader::peek() {
  if (offset_ == block_begin_ + static_cast<int64_t>(block_.size())) {
    if (is_whole_) return kEnd;
    fill();
    if (is_whole_ && block_.empty()) return kEnd;
  }
  return static_cast<unsigned char>(block_[static_cast<size_t>(offset_ - block_begin_)]);
}

int RecordReader::get() {
  const int c = peek();
  if (c == '\n') ++line_;
  if (c != kEnd) ++offset_;
  return c;
}

// Leaves the next character that is no white space unread, and returns it.
int RecordReader::skip_space() {
  while (is_space(peek())) get();
  return peek();
}

bool RecordReader::next(RawRecord& record) {
  record = {.text = std::move(record.text)};
  record.text.clear();
  if (at_end_) return false;
  bool found = false;
  switch (format_) {
    case Format::json_array:
      found = next_element(record);
      break;
    case Format::json_lines:
      found = next_line(record);
      break;
    case Format::plain_text:
      found = next_text(record);
      break;
  }
  at_end_ = !found;
  if (!found) return false;
  record.end = offset_;
  record.file = &file_;
  record.number = record.continues ? number_ : ++number_;
  take_problem(record);
  return true;
}

// What stands in place of a row that cannot be read says why (source/json_text.h).
void RecordReader::take_problem(RawRecord& record) {
  check_utf8(record, record.text);
  if (file_.is_table() && record.problem.empty() && record.text.starts_with('"'))
    record.problem = base::parse_json_value(record.text, [&](const std::string& what, size_t) {
                       fail(what, record.line);
                     }).get<std::string>();
  if (!record.problem.empty()) record.is_long = false;
  if (!record.problem.empty() || record.is_long) record.text.clear();
}

// A record of many may be left out; of plain text, of which there is one, too much would be.
void RecordReader::check_utf8(RawRecord& record, std::string_view text) {
  const size_t invalid = find_invalid_utf8(text);
  if (invalid == std::string_view::npos) return;
  if (format_ != Format::plain_text) {
    record.problem = "its text is not valid UTF-8; convert the file to UTF-8";
    return;
  }
  std::string begin(kReadBytes, '\0');
  begin.resize(static_cast<size_t>(file_.read_at(0, begin.data(), kReadBytes)));
  if (const auto advice = content_advice(path_, begin)) fail(*advice, 0);
  fail("the text is not valid UTF-8; convert the file to UTF-8",
       record.line + count_lines(text.substr(0, invalid)));
}

// Takes what comes next of the block into the record. Only what is not checked yet is held of a
// long one.
void RecordReader::keep(RawRecord& record, std::string_view part) {
  line_ += count_lines(part);
  offset_ += static_cast<int64_t>(part.size());
  record.text += part;
  if (record.text.size() <= (record.is_long ? kTextPieceBytes : kMaxRecordBytes)) return;
  record.is_long = true;
  const size_t whole = record.text.size() - incomplete_tail(record.text);
  check_utf8(record, std::string_view(record.text).substr(0, whole));
  record.text.erase(0, whole);
}

bool RecordReader::next_element(RawRecord& record) {
  int c = skip_space();
  if (c == ']') {
    get();
    if (!list_ && skip_space() != kEnd) fail("there is text after the end of the array", line_);
    return false;
  }
  if (!at_first_element_) {
    if (c != ',') fail("broken JSON: expected ',' or ']' after a record", line_);
    get();
    c = skip_space();
  }
  at_first_element_ = false;
  if (c == kEnd) fail("broken JSON: the array is not closed; the file may be cut off", line_);
  if (c == ',' || c == ']' || c == '}' || c == ':')
    fail(fmt::format("broken JSON: expected record {}, an object like {{\"prompt\": ...}}",
                     number_ + 1),
         line_);
  take_element(record);
  return true;
}

// Copies one value, by counting braces outside of strings; what reads the record judges it.
void RecordReader::take_element(RawRecord& record) {
  record.line = line_;
  record.begin = offset_;
  constexpr std::string_view kBegins = "{[\"";
  if (kBegins.find(static_cast<char>(peek())) == std::string_view::npos) {
    while (!ends_word(peek())) keep(record, unread().substr(0, 1));
    return;
  }
  ValueEnd end;
  while (!end.is_reached()) {
    if (peek() == kEnd)
      fail(fmt::format("broken JSON: record {}, which begins here, is not closed", number_ + 1),
           record.line);
    keep(record, end.take(unread()));
  }
}

bool RecordReader::next_line(RawRecord& record) {
  do {
    record.line = line_;
    record.begin = offset_;
    record.text.clear();
    bool is_open = true;
    while (is_open && peek() != kEnd) {
      const size_t end = unread().find('\n');
      keep(record, unread().substr(0, end));
      is_open = end == std::string_view::npos;
    }
    if (!is_open) get();
  } while (!record.is_long && is_blank(record.text) && peek() != kEnd);
  return record.is_long || !is_blank(record.text);
}

bool RecordReader::next_text(RawRecord& record) {
  record.continues = text_is_open_;
  do {
    // The line break that sets a separator off belongs to neither text.
    if (!record.continues && (number_ > 0 || !record.text.empty()))
      while (peek() == '\n' || peek() == '\r') get();
    record.line = line_;
    record.text.swap(held_);
    held_.clear();
    text_is_open_ = record.is_open = read_piece(record.text);
    if (record.continues || record.is_open) return true;
  } while (is_blank(record.text) && peek() != kEnd);
  return !is_blank(record.text);
}

// Appends text up to a separator or the end, and returns false; or as much as a piece has.
bool RecordReader::read_piece(std::string& text) {
  for (int c = get(); c != kEnd; c = get()) {
    text += static_cast<char>(c);
    if (!separator_.empty() && c == static_cast<unsigned char>(separator_.back()) &&
        text.ends_with(separator_)) {
      text.resize(text.size() - separator_.size());
      return false;
    }
    if (text.size() < kTextPieceBytes) continue;
    const size_t held = separator_.empty() ? 0 : separator_.size() - 1;
    size_t size = text.size() - std::min(text.size(), held);
    size -= incomplete_tail(std::string_view(text).substr(0, size));
    held_.assign(text, size);
    text.resize(size);
    return true;
  }
  return false;
}

}  // namespace snug::text
