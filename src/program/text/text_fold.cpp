// Two stages: lines are divided into runs of one layer; then, starting from each run, a template
// made from the first two runs is matched with as many following runs as possible.
#include "program/text/text_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "program/text/text_cursor.h"

namespace snug::program {
namespace {

// Longer numbers are not replaced, so that the arithmetic below cannot overflow.
constexpr size_t kMaxDigits = 15;

// A piece of a line: text, or a number that equals scale * index + offset in layer `index`.
struct LinePart {
  bool is_number = false;
  std::string text;
  int64_t scale = 0;
  int64_t offset = 0;
};
using Template = std::vector<LinePart>;

// Divides a line into text and numbers. Quoted names and numbers with leading zeros count as text.
Template pieces_of(const std::string& line) {
  Template pieces(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && is_digit(line[end])) ++end;
    const bool canonical = end > i && end - i <= kMaxDigits && (line[i] != '0' || end == i + 1);
    if (canonical && !quoted) {
      pieces.push_back({true, {}, 0, std::stoll(line.substr(i, end - i))});
      pieces.push_back({});
      i = end;
      continue;
    }
    end = std::max(end, i + 1);
    if (line[i] == '\\' && quoted) end = std::min(i + 2, line.size());
    if (line[i] == '"') quoted = !quoted;
    pieces.back().text += line.substr(i, end - i);
    i = end;
  }
  return pieces;
}

// The template that produces both lines, if they differ only in numbers.
std::optional<Template> fit(const TextLine& first, const TextLine& second) {
  Template pieces = pieces_of(first.text);
  const Template other = pieces_of(second.text);
  if (pieces.size() != other.size()) return std::nullopt;
  const int64_t step = second.layer - first.layer;
  for (size_t i = 0; i < pieces.size(); ++i) {
    LinePart& piece = pieces[i];
    if (piece.text != other[i].text) return std::nullopt;
    const int64_t growth = other[i].offset - piece.offset;
    if (growth % step != 0) return std::nullopt;
    piece.scale = growth / step;
    piece.offset -= piece.scale * first.layer;
  }
  return pieces;
}

std::string instance(const Template& pieces, int64_t layer) {
  std::string line;
  for (const LinePart& piece : pieces)
    line += piece.is_number ? std::to_string(piece.scale * layer + piece.offset) : piece.text;
  return line;
}

std::string written(const Template& pieces) {
  std::string line;
  for (const LinePart& piece : pieces) {
    if (!piece.is_number)
      line += piece.text;
    else if (piece.scale == 0)
      line += std::to_string(piece.offset);
    else if (piece.scale == 1 && piece.offset == 0)
      line += '*';
    else
      line += fmt::format("<{}*{}>", piece.scale == 1 ? "" : std::to_string(piece.scale),
                          piece.offset == 0 ? "" : fmt::format("{:+}", piece.offset));
  }
  return line;
}

// Consecutive lines of one layer.
struct Run {
  size_t begin = 0;
  size_t end = 0;
  int32_t layer = -1;
};

std::vector<Run> runs_of(const std::vector<TextLine>& lines) {
  std::vector<Run> runs;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (runs.empty() || runs.back().layer != lines[i].layer) runs.push_back({i, i, lines[i].layer});
    runs.back().end = i + 1;
  }
  return runs;
}

// The number of runs that one block replaces.
struct FoldedRuns {
  size_t runs = 1;
  std::vector<Template> lines;
};

bool matches(const std::vector<Template>& templates, const std::vector<TextLine>& lines,
             const Run& run) {
  if (run.end - run.begin != templates.size()) return false;
  for (size_t i = 0; i < templates.size(); ++i)
    if (instance(templates[i], run.layer) != lines[run.begin + i].text) return false;
  return true;
}

// The longest block that starts with runs[first].
FoldedRuns block_at(const std::vector<TextLine>& lines, const std::vector<Run>& runs,
                    size_t first) {
  if (first + 1 >= runs.size()) return {};
  const Run& a = runs[first];
  const Run& b = runs[first + 1];
  const int32_t step = b.layer - a.layer;
  if (a.layer < 0 || b.layer < 0 || (step != 1 && step != -1)) return {};
  if (a.end - a.begin != b.end - b.begin) return {};
  FoldedRuns block;
  for (size_t i = 0; i < a.end - a.begin; ++i) {
    auto line = fit(lines[a.begin + i], lines[b.begin + i]);
    if (!line) return {};
    block.lines.push_back(std::move(*line));
  }
  for (size_t next = first; next < runs.size(); ++next) {
    const auto expected = static_cast<int64_t>(a.layer) + step * static_cast<int64_t>(next - first);
    if (runs[next].layer != expected || !matches(block.lines, lines, runs[next])) break;
    block.runs = next - first + 1;
  }
  return block;
}

}  // namespace

std::vector<std::string> fold_layers(const std::vector<TextLine>& lines) {
  const std::vector<Run> runs = runs_of(lines);
  std::vector<std::string> folded;
  for (size_t at = 0; at < runs.size();) {
    const FoldedRuns block = block_at(lines, runs, at);
    // A first layer may match only the second one, while a longer block could start at the second.
    const bool better_later = block.runs == 2 && block_at(lines, runs, at + 1).runs > 2;
    if (block.runs < 2 || better_later) {
      for (size_t i = runs[at].begin; i < runs[at].end; ++i) folded.push_back(lines[i].text);
      ++at;
      continue;
    }
    const bool down = runs[at + 1].layer < runs[at].layer;
    folded.push_back(
        fmt::format("layer x{} from {}{} {{", block.runs, runs[at].layer, down ? " down" : ""));
    for (const Template& line : block.lines) folded.push_back("  " + written(line));
    folded.push_back("}");
    at += block.runs;
  }
  return folded;
}

}  // namespace snug::program
