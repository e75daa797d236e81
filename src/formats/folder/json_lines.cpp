// The place at which a file is continued is found from its end: lines are read backwards, in
// pieces, up to the first one whose step is kept. Earlier lines are not read, except the first.
#include "formats/folder/json_lines.h"

#include "base/error.h"
#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace snug::formats {
namespace {

// The longest line with its line end that is written in one call; a longer one takes two.
constexpr size_t kLineBytes = 4096;
// A longer line cannot be Snug's, whose lines have some hundred bytes.
constexpr int64_t kMaxLineBytes = int64_t{1} << 20;
// Large enough for several thousand lines per read.
constexpr int64_t kPieceBytes = int64_t{256} << 10;

struct Line {
  int64_t start = 0;
  int64_t end = 0;        // behind the line end
  bool is_ended = false;  // has a line end, so it was written completely
  bool is_overlong = false;
  // With the line end; only a part of an overlong line. Valid until the next line is read.
  std::string_view text;
};

// The lines of a file from the last to the first; holds one line and one piece in memory.
class BackwardLines {
 public:
  explicit BackwardLines(const base::File& file)
      : file_(file), begin_(file.size()), line_end_(begin_) {}

  std::optional<Line> next() {
    bytes_.resize(rest_);
    if (line_end_ == 0) return std::nullopt;
    if (bytes_.empty()) read_piece();
    Line line;
    line.end = line_end_;
    line.is_ended = bytes_.back() == '\n';
    // The last byte is this line's own end, so the search for the previous line's end starts before
    // it.
    size_t found = last_end(bytes_.size() - 1);
    while (found == std::string::npos && begin_ > 0) {
      if (static_cast<int64_t>(bytes_.size()) > kMaxLineBytes) {
        line.is_overlong = true;
        bytes_.clear();
      }
      found = last_end(read_piece());
    }
    rest_ = found == std::string::npos ? 0 : found + 1;
    line.text = std::string_view(bytes_).substr(rest_);
    line_end_ = line.start = begin_ + static_cast<int64_t>(rest_);
    line.is_overlong = line.is_overlong || line.end - line.start > kMaxLineBytes;
    return line;
  }

 private:
  // The position of the last line end in the first `bytes` bytes.
  size_t last_end(size_t bytes) const {
    return std::string_view(bytes_).substr(0, bytes).rfind('\n');
  }

  // Reads the piece before `bytes_` and prepends it; returns its size.
  size_t read_piece() {
    const int64_t bytes = std::min(begin_, kPieceBytes);
    begin_ -= bytes;
    bytes_.insert(0, static_cast<size_t>(bytes), '\0');
    file_.read_at(begin_, bytes_.data(), bytes);
    return static_cast<size_t>(bytes);
  }

  const base::File& file_;
  int64_t begin_;     // of bytes_, as an offset in the file
  int64_t line_end_;  // of the next line
  // The last bytes of the next line, followed by those of the line returned before.
  std::string bytes_;
  size_t rest_ = 0;  // how many of bytes_ belong to the next line
};

// Nothing if the line is not a JSON object; `step`, if it is present, must be an integer.
std::optional<int64_t> step_of(std::string_view line, const std::string& file) {
  try {
    const nlohmann::json object = base::parse_json(line, file);
    return base::JsonObject(object, file).integer_or("step", 0);
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

[[noreturn]] void throw_broken_line(const base::File& file, int64_t start) {
  std::string piece;
  int64_t number = 1;
  for (int64_t offset = 0; offset < start; offset += kPieceBytes) {
    piece.resize(static_cast<size_t>(std::min(start - offset, kPieceBytes)));
    file.read_at(offset, piece.data(), static_cast<int64_t>(piece.size()));
    number += std::count(piece.begin(), piece.end(), '\n');
  }
  throw base::UserError("the line is not a JSON object with a step; repair or remove the file",
                        {file.path().string(), static_cast<int>(number)});
}

struct KeptLines {
  int64_t bytes = 0;
  int64_t last_step = 0;
};

// The bytes up to the end of the last complete line whose step is at most last_step.
KeptLines kept_lines(const base::File& file, int64_t last_step) {
  const int64_t size = file.size();
  std::optional<int64_t> broken_start;
  KeptLines kept;
  BackwardLines lines(file);
  while (const std::optional<Line> line = lines.next()) {
    if (!line->is_ended) continue;
    const std::optional<int64_t> step =
        line->is_overlong ? std::nullopt : step_of(line->text, file.path().string());
    if (step && *step <= last_step) {
      kept = {line->end, *step};
      break;
    }
    if (step)
      broken_start.reset();  // a broken line before this one is dropped together with it
    else if (line->end != size)
      broken_start = line->start;
  }
  if (broken_start) throw_broken_line(file, *broken_start);
  return kept;
}

int64_t first_step(const base::File& file, int64_t kept_bytes) {
  std::string text(static_cast<size_t>(std::min(kept_bytes, kMaxLineBytes)), '\0');
  file.read_at(0, text.data(), static_cast<int64_t>(text.size()));
  const size_t end = text.find('\n');
  const std::optional<int64_t> step =
      end == std::string::npos
          ? std::nullopt
          : step_of(std::string_view(text).substr(0, end), file.path().string());
  if (!step) throw_broken_line(file, 0);
  return *step;
}

}  // namespace

JsonLines JsonLines::create(const std::filesystem::path& path) {
  return {base::File::create(path), 0};
}

JsonLines JsonLines::resume(const std::filesystem::path& path, int64_t last_step) {
  base::File file = base::File::open_for_update(path);
  const KeptLines kept = kept_lines(file, last_step);
  std::optional<Steps> steps;
  if (kept.bytes > 0) steps = {first_step(file, kept.bytes), kept.last_step};
  file.truncate(kept.bytes);
  JsonLines lines(std::move(file), kept.bytes);
  lines.kept_ = steps;
  return lines;
}

void JsonLines::append(std::string_view object) {
  SNUG_CHECK(object.find('\n') == std::string_view::npos, "a record of several lines: {}", object);
  char line[kLineBytes];
  if (object.size() < kLineBytes) {
    *std::copy(object.begin(), object.end(), line) = '\n';
    file_.write_at(end_, line, static_cast<int64_t>(object.size()) + 1);
  } else {
    file_.write_at(end_, object.data(), static_cast<int64_t>(object.size()));
    file_.write_at(end_ + static_cast<int64_t>(object.size()), "\n", 1);
  }
  end_ += static_cast<int64_t>(object.size()) + 1;
}

}  // namespace snug::formats
