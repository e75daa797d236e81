#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "program/text/text_fold.h"

namespace snug::program {
namespace {

// Limits of what a small text may unfold to.
constexpr int64_t kMaxLayers = 100'000;
constexpr size_t kMaxCharacters = size_t{1} << 30;

struct Header {
  int64_t layers = 0;
  int64_t first = 0;
  bool down = false;
};

// The line up to a '#' that is not inside a quoted name.
std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && quoted)
      ++i;
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == '#' && !quoted)
      return line.substr(0, i);
  }
  return line;
}

// Replaces `*` and `<a*+b>` by the index of a layer.
class Unfolder {
 public:
  Unfolder(const SourceLine& line, const std::string& file) : line_(line), file_(file) {}

  SourceLine at(int64_t index) {
    SourceLine result;
    result.line = line_.line;
    bool quoted = false;
    const std::string& text = line_.text;
    for (size_t i = 0; i < text.size();) {
      if (!quoted && (text[i] == '*' || text[i] == '<')) {
        result.places.push_back({result.text.size(), static_cast<int>(i) + 1, true});
        result.text += std::to_string(text[i] == '*' ? (++i, index) : scaled(i, index));
        result.places.push_back({result.text.size(), static_cast<int>(i) + 1, false});
        continue;
      }
      if (text[i] == '"') quoted = !quoted;
      if (text[i] == '\\' && quoted && i + 1 < text.size()) result.text += text[i++];
      result.text += text[i++];
    }
    return result;
  }

 private:
  // Evaluates <a*+b> at offset i and moves i behind it.
  int64_t scaled(size_t& i, int64_t index) {
    const std::string& text = line_.text;
    const size_t begin = i++;
    int64_t scale = 1;
    int64_t offset = 0;
    if (i < text.size() && text[i] != '*') scale = integer(i, begin);
    if (i == text.size() || text[i] != '*') fail(begin);
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
      if (text[i] == '+') ++i;
      offset = integer(i, begin);
    }
    if (i == text.size() || text[i] != '>') fail(begin);
    ++i;
    const int64_t value = scale * index + offset;
    if (value < 0) {
      throw base::UserError(fmt::format("is {} in layer {}, expected 0 or more", value, index),
                            {file_, line_.line, static_cast<int>(begin) + 1});
    }
    return value;
  }

  int64_t integer(size_t& i, size_t begin) {
    const char* const data = line_.text.data();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(data + i, data + line_.text.size(), value);
    constexpr int64_t kLimit = 1'000'000'000'000;  // multiplied by kMaxLayers it still fits 64 bits
    if (error != std::errc{} || value > kLimit || value < -kLimit) fail(begin);
    i = static_cast<size_t>(end - data);
    return value;
  }

  [[noreturn]] void fail(size_t begin) {
    throw base::UserError("expected an index such as <*-1> or <7*+3>",
                          {file_, line_.line, static_cast<int>(begin) + 1});
  }

  const SourceLine& line_;
  const std::string& file_;
};

Header header_of(const SourceLine& line, const std::string& file) {
  LineCursor cursor(line, file);
  Header header;
  cursor.accept_word("layer");
  const size_t begin = cursor.position();
  const std::string count = cursor.word("a number of layers such as x32");
  const char* const end = count.data() + count.size();
  const auto [stop, error] = std::from_chars(count.data() + 1, end, header.layers);
  if (count[0] != 'x' || error != std::errc{} || stop != end || header.layers < 1 ||
      header.layers > kMaxLayers)
    cursor.fail_at(begin, fmt::format("expected x1 to x{} layers, found '{}'", kMaxLayers, count));
  if (!cursor.accept_word("from")) cursor.fail_expected("'from' and the first layer");
  header.first = cursor.integer("the first layer", 0, kMaxLayers);
  header.down = cursor.accept_word("down");
  if (header.down && header.first < header.layers - 1)
    cursor.fail(
        fmt::format("{} layers down from {} end below layer 0", header.layers, header.first));
  cursor.expect('{', "to open the block");
  if (!cursor.at_end()) cursor.fail_expected("the end of the line");
  return header;
}

bool is_close(const SourceLine& line) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  const auto rest = std::find_if_not(line.text.begin(), line.text.end(), is_space);
  return *rest == '}' && std::all_of(rest + 1, line.text.end(), is_space);
}

// The lines that contain more than a comment.
std::vector<SourceLine> source_lines(std::string_view text) {
  std::vector<SourceLine> lines;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = without_comment(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    ++number;
    if (line.find_first_not_of(" \t") != std::string_view::npos)
      lines.push_back({std::string(line), number, {}});
  }
  return lines;
}

}  // namespace

std::vector<SourceLine> unfold_layers(std::string_view text, const std::string& file) {
  const std::vector<SourceLine> lines = source_lines(text);
  std::vector<SourceLine> unfolded;
  size_t characters = 0;
  for (size_t at = 0; at < lines.size(); ++at) {
    if (!LineCursor(lines[at], file).accept_word("layer")) {
      unfolded.push_back(lines[at]);
      continue;
    }
    const size_t begin = at;
    const Header header = header_of(lines[begin], file);
    const auto close =
        std::find_if(lines.begin() + static_cast<ptrdiff_t>(begin) + 1, lines.end(), is_close);
    if (close == lines.end())
      throw base::UserError("this block of layers is not closed by a line with '}'",
                            {file, lines[begin].line, 1});
    at = static_cast<size_t>(close - lines.begin());
    for (int64_t k = 0; k < header.layers; ++k) {
      for (size_t i = begin + 1; i < at; ++i) {
        unfolded.push_back(
            Unfolder(lines[i], file).at(header.down ? header.first - k : header.first + k));
        characters += unfolded.back().text.size();
      }
      if (characters > kMaxCharacters)
        throw base::UserError("this block of layers unfolds to more than 1 GiB of text",
                              {file, lines[begin].line, 1});
    }
  }
  return unfolded;
}

}  // namespace snug::program
