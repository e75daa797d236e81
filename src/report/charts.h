// Charts as HTML: the drawing is SVG that stretches to the width of the page, and all text around
// it is HTML, so that it has its size on every screen. What a part of a drawing means is its title,
// which browsers show where it is pointed at.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace snug::report {

// Colours of html.cpp, by number.
inline constexpr int kColours = 15;

using TextOf = std::function<std::string(double)>;

struct Area {
  std::string name;
  int colour = 0;
  std::vector<double> heights;  // one for each x
};

// Areas on top of each other, each height kept until the next x.
struct AreaChart {
  std::vector<double> x;  // rising, at least one
  double end = 0;         // of the last height
  std::vector<Area> areas;
  double limit = 0;          // a dashed line; 0: none
  double mark = -1;          // an x that is marked; below 0: none
  std::vector<double> cuts;  // x of faint lines
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

struct LineChart {
  std::vector<double> x;
  std::vector<double> y;  // one for each x; what is not finite is left out
  int colour = 0;
  TextOf text_of_x;
  TextOf text_of_y;
};
// Empty where nothing is finite.
std::string line_chart(const LineChart& chart);

struct Bar {
  std::string name;
  double length = 0;
  std::string text;
};
std::string bar_chart(const std::vector<Bar>& bars);

}  // namespace snug::report
