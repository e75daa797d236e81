#include "cli/text_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/axis_ticks.h"

namespace snug::cli {
namespace {

struct Bounds {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  // The cell of a value, of `cells` in all.
  int64_t cell(double value, int64_t cells) const {
    if (!(most > least)) return cells / 2;
    return std::llround((value - least) / (most - least) * static_cast<double>(cells - 1));
  }
};

class TextGrid {
 public:
  TextGrid(const std::vector<TextLine>& lines, int64_t columns, int64_t rows)
      : columns_(columns), cells_(static_cast<size_t>(rows), std::string(columns, ' ')) {
    for (const TextLine& line : lines)
      for (size_t i = 0; i < line.x.size(); ++i) {
        if (!std::isfinite(line.y[i])) continue;
        x_.include(line.x[i]);
        y_.include(line.y[i]);
      }
  }

  bool is_empty() const { return x_.least > x_.most; }

  // Values that fall into one column are drawn as their mean.
  void draw(const TextLine& line) {
    std::vector<double> sums(static_cast<size_t>(columns_));
    std::vector<int64_t> counts(sums.size());
    for (size_t i = 0; i < line.x.size(); ++i) {
      if (!std::isfinite(line.y[i])) continue;
      const auto column = static_cast<size_t>(x_.cell(line.x[i], columns_));
      sums[column] += line.y[i];
      ++counts[column];
    }
    for (size_t column = 0; column < sums.size(); ++column) {
      if (counts[column] == 0) continue;
      char& cell = at(sums[column] / static_cast<double>(counts[column]), column);
      cell = cell == ' ' ? line.letter : '*';
    }
  }

  std::string text() const {
    std::vector<std::string> marks(cells_.size());
    for (const double tick : report::axis_ticks(y_.least, y_.most, false))
      marks[row_of(tick)] = fmt::format("{:.4g}", tick);
    std::string text;
    for (size_t row = 0; row < cells_.size(); ++row) {
      std::string line = fmt::format("{:>10} |{}", marks[row], cells_[row]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text +
           fmt::format("{:>10} +{}\n{:>12}{}\n", "", std::string(columns_, '-'), "", steps());
  }

 private:
  size_t row_of(double y) const {
    const auto rows = std::ssize(cells_);
    return static_cast<size_t>(rows - 1 - y_.cell(y, rows));
  }
  char& at(double y, size_t column) { return cells_[row_of(y)][column]; }

  // Each number begins under its step, and one for which there is no room is left out.
  std::string steps() const {
    std::string line;
    for (const double tick : report::axis_ticks(x_.least, x_.most, true)) {
      const auto column = static_cast<size_t>(x_.cell(tick, columns_));
      if (!line.empty() && column < line.size() + 1) continue;
      line.resize(column, ' ');
      line += fmt::format("{:.0f}", tick);
    }
    return line;
  }

  int64_t columns_;
  std::vector<std::string> cells_;
  Bounds x_;
  Bounds y_;
};

}  // namespace

std::string text_chart(const std::vector<TextLine>& lines, int64_t columns, int64_t rows) {
  TextGrid grid(lines, columns, rows);
  if (grid.is_empty()) return "";
  for (const TextLine& line : lines) grid.draw(line);
  return grid.text();
}

}  // namespace snug::cli
