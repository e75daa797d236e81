// Charts as HTML: the drawing is SVG that stretches to the width of the page, and all text around
// it is HTML, so that the text keeps its size on every screen. Each part of a drawing has a title
// that explains it, which browsers show when the pointer is over it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace snug::report {

// The number of colours that html.cpp defines.
inline constexpr int kColours = 15;

using TextOf = std::function<std::string(double)>;

struct Area {
  std::string name;
  int colour = 0;
  std::vector<double> heights;  // one for each x
};

// Areas stacked on top of each other; each height holds until the next x.
struct AreaChart {
  std::vector<double> x;  // ascending, at least one
  double end = 0;         // where the last height ends
  std::vector<Area> areas;
  double limit = 0;          // a dashed line; 0: none
  double mark = -1;          // an x to mark; negative: none
  std::vector<double> cuts;  // x positions of faint vertical lines
  TextOf text_of_x;
  TextOf text_of_height;
};
std::string area_chart(const AreaChart& chart);

struct Span {
  double start = 0;
  double length = 0;
  int colour = 0;
  std::string title;
};
struct Lane {
  std::string name;
  std::vector<Span> spans;
};
struct LaneChart {
  double end = 0;
  std::vector<Lane> lanes;
  std::vector<std::pair<std::string, int>> legend;  // names of colours
  TextOf text_of_x;
};
std::string lane_chart(const LaneChart& chart);

struct Line {
  std::string name;
  std::vector<double> x;  // ascending
  std::vector<double> y;  // one for each x; a value that is not finite is a gap
  int colour = 0;
  bool is_faint = false;   // thin, for what another line smooths
  bool has_marks = false;  // a mark at each point, with its values
};

// Lines over one axis each way, whose ticks are round numbers. A line is drawn over those before
// it.
struct LineChart {
  std::vector<Line> lines;
  bool whole_x = true;  // x counts steps
  TextOf text_of_x;
  TextOf text_of_y;
};
// With a legend where several lines have a name. Returns an empty string where no value is finite.
std::string line_chart(const LineChart& chart);

struct Bar {
  std::string name;
  double length = 0;
  std::string text;
};
std::string bar_chart(const std::vector<Bar>& bars);

}  // namespace snug::report
