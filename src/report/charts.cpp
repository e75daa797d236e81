#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "report/axis_ticks.h"
#include "report/html.h"

namespace snug::report {
namespace {

// The width and height of a drawing, in SVG units.
constexpr double kSize = 1000;
constexpr int kLabels = 4;

double scaled(double value, double whole) { return whole > 0 ? kSize * value / whole : 0; }

std::string open_svg() {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {0:.0f}\" "
      "preserveAspectRatio=\"none\">\n",
      kSize);
}

std::string colour_of(int colour) { return fmt::format("var(--c{})", colour % kColours); }

// The values at both ends of an axis and at points between them.
std::string labels(const char* kind, double first, double last, const TextOf& text_of) {
  std::string html = fmt::format("<div class=\"{}\">", kind);
  for (int i = 0; i <= kLabels; ++i) {
    const double value = first + (last - first) * i / kLabels;
    html += fmt::format("<span>{}</span>", escaped(text_of(value)));
  }
  return html + "</div>\n";
}

std::string legend_of(const std::vector<std::pair<std::string, int>>& names) {
  std::string html = "<ul class=\"legend\">";
  for (const auto& [name, colour] : names)
    html += fmt::format("<li><i style=\"background: {}\"></i>{}</li>", colour_of(colour),
                        escaped(name));
  return html + "</ul>\n";
}

double total_at(const AreaChart& chart, size_t position) {
  double sum = 0;
  for (const Area& area : chart.areas) sum += area.heights[position];
  return sum;
}

// The area between two step curves.
std::string area_path(const AreaChart& chart, const std::vector<double>& bottom,
                      const std::vector<double>& top, double height) {
  std::string path;
  const auto x_after = [&](size_t i) {
    return scaled(i + 1 < chart.x.size() ? chart.x[i + 1] : chart.end, chart.end);
  };
  for (size_t i = 0; i < chart.x.size(); ++i) {
    const double y = kSize - scaled(top[i], height);
    path += fmt::format("{}{:.1f} {:.1f}H{:.1f}", i == 0 ? "M" : "L", scaled(chart.x[i], chart.end),
                        y, x_after(i));
  }
  for (size_t i = chart.x.size(); i-- > 0;) {
    const double y = kSize - scaled(bottom[i], height);
    path += fmt::format("L{:.1f} {:.1f}H{:.1f}", x_after(i), y, scaled(chart.x[i], chart.end));
  }
  return path + "Z";
}

std::string vertical_line(const char* kind, double x) {
  return fmt::format(
      "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"0\" y2=\"{2:.0f}\"/>\n", kind, x,
      kSize);
}

// What the axes of a line chart show.
struct Extent {
  double left = 0;
  double right = 0;
  double bottom = 0;
  double top = 0;

  double x_of(double x) const { return scaled(x - left, right - left); }
  double y_of(double y) const { return kSize - scaled(y - bottom, top - bottom); }
};

// The values lie a little inside, so that no line runs along the border.
void widen(Extent& extent) {
  if (extent.bottom == extent.top) {
    const double around = extent.bottom == 0 ? 1 : std::abs(extent.bottom) / 10;
    extent.bottom -= around;
    extent.top += around;
    return;
  }
  const double margin = (extent.top - extent.bottom) / 25;
  extent.bottom -= margin;
  extent.top += margin;
}

std::optional<Extent> extent_of(const std::vector<Line>& lines) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Extent extent{kInfinite, -kInfinite, kInfinite, -kInfinite};
  for (const Line& line : lines)
    for (size_t i = 0; i < line.x.size(); ++i) {
      if (!std::isfinite(line.y[i])) continue;
      extent.left = std::min(extent.left, line.x[i]);
      extent.right = std::max(extent.right, line.x[i]);
      extent.bottom = std::min(extent.bottom, line.y[i]);
      extent.top = std::max(extent.top, line.y[i]);
    }
  if (extent.left > extent.right) return std::nullopt;
  widen(extent);
  return extent;
}

std::string y_marks(const LineChart& chart, const Extent& extent) {
  std::string html = "<div class=\"ticks_y\">";
  for (const double tick : axis_ticks(extent.bottom, extent.top, false))
    html += fmt::format("<span style=\"top: {:.2f}%\">{}</span>", extent.y_of(tick) / 10,
                        escaped(chart.text_of_y(tick)));
  return html + "</div>\n";
}

// Under its tick, except at the ends, where a long number would leave the drawing.
std::string x_marks(const LineChart& chart, const Extent& extent) {
  constexpr double kNearEnd = kSize / 25;
  std::string html = "<div class=\"ticks_x\">";
  for (const double tick : axis_ticks(extent.left, extent.right, chart.whole_x)) {
    const double x = extent.x_of(tick);
    const char* place = x < kNearEnd           ? " class=\"first\""
                        : x > kSize - kNearEnd ? " class=\"last\""
                                               : "";
    html += fmt::format("<span{} style=\"left: {:.2f}%\">{}</span>", place, x / 10,
                        escaped(chart.text_of_x(tick)));
  }
  return html + "</div>\n";
}

std::string line_path(const Line& line, const Extent& extent) {
  std::string path;
  bool is_open = false;
  for (size_t i = 0; i < line.x.size(); ++i) {
    if (!std::isfinite(line.y[i])) {
      is_open = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", is_open ? "L" : "M", extent.x_of(line.x[i]),
                        extent.y_of(line.y[i]));
    if (!is_open) path += "h0.01";  // a line of this length makes a single point visible
    is_open = true;
  }
  return fmt::format("<path class=\"curve{}\" stroke=\"{}\" d=\"{}\"/>\n",
                     line.is_faint ? " faint" : "", colour_of(line.colour), path);
}

// A drawing that is stretched has no circles: a mark is a line of no length with round ends.
std::string line_marks(const Line& line, const Extent& extent, const LineChart& chart) {
  std::string html;
  for (size_t i = 0; i < line.x.size(); ++i)
    if (std::isfinite(line.y[i]))
      html += fmt::format(
          "<path class=\"point\" stroke=\"{}\" d=\"M{:.1f} {:.1f}h0.01\"><title>{}{}: "
          "{}</title></path>\n",
          colour_of(line.colour), extent.x_of(line.x[i]), extent.y_of(line.y[i]),
          line.name.empty() ? "" : escaped(line.name) + ", ", escaped(chart.text_of_x(line.x[i])),
          escaped(chart.text_of_y(line.y[i])));
  return html;
}

}  // namespace

std::string area_chart(const AreaChart& chart) {
  double largest = 0;
  for (size_t i = 0; i < chart.x.size(); ++i) largest = std::max(largest, total_at(chart, i));
  const double height = 1.05 * std::max(largest, chart.limit);
  std::string html = "<div class=\"chart\">\n" + labels("y", height, 0, chart.text_of_height);
  html += "<div class=\"plot\">" + open_svg();
  std::vector<std::pair<std::string, int>> names;
  std::vector<double> bottom(chart.x.size(), 0.0);
  for (const Area& area : chart.areas) {
    std::vector<double> top = bottom;
    for (size_t i = 0; i < top.size(); ++i) top[i] += area.heights[i];
    html +=
        fmt::format("<path fill=\"{}\" d=\"{}\"><title>{}</title></path>\n", colour_of(area.colour),
                    area_path(chart, bottom, top, height), escaped(area.name));
    names.emplace_back(area.name, area.colour);
    bottom = std::move(top);
  }
  for (const double cut : chart.cuts) html += vertical_line("mark", scaled(cut, chart.end));
  if (chart.limit > 0)
    html += fmt::format(
        "<line class=\"limit\" x1=\"0\" x2=\"{1:.0f}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>\n",
        kSize - scaled(chart.limit, height), kSize);
  if (chart.mark >= 0) html += vertical_line("limit", scaled(chart.mark, chart.end));
  html += "</svg></div>\n" + labels("x", 0, chart.end, chart.text_of_x);
  return html + legend_of(names) + "</div>\n";
}

std::string lane_chart(const LaneChart& chart) {
  std::string html = "<div class=\"lanes\">\n";
  for (const Lane& lane : chart.lanes) {
    html += fmt::format("<span>{}</span>{}", escaped(lane.name), open_svg());
    for (const Span& span : lane.spans)
      html += fmt::format(
          "<rect x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"{:.0f}\" "
          "fill=\"{}\"><title>{}</title></rect>\n",
          scaled(span.start, chart.end), scaled(span.length, chart.end), kSize,
          colour_of(span.colour), escaped(span.title));
    html += "</svg>\n";
  }
  html += labels("x", 0, chart.end, chart.text_of_x);
  return html + legend_of(chart.legend) + "</div>\n";
}

std::string line_chart(const LineChart& chart) {
  const std::optional<Extent> extent = extent_of(chart.lines);
  if (!extent) return "";
  std::string html = "<div class=\"chart\">\n" + y_marks(chart, *extent);
  html += "<div class=\"plot low\">" + open_svg();
  for (const double tick : axis_ticks(extent->bottom, extent->top, false))
    html += fmt::format(
        "<line class=\"grid\" x1=\"0\" x2=\"{1:.0f}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>\n",
        extent->y_of(tick), kSize);
  std::vector<std::pair<std::string, int>> names;
  for (const Line& line : chart.lines) {
    html += line_path(line, *extent);
    if (line.has_marks) html += line_marks(line, *extent, chart);
    if (!line.name.empty()) names.emplace_back(line.name, line.colour);
  }
  html += "</svg></div>\n" + x_marks(chart, *extent);
  if (names.size() > 1) html += legend_of(names);
  return html + "</div>\n";
}

std::string bar_chart(const std::vector<Bar>& bars) {
  double longest = 0;
  for (const Bar& bar : bars) longest = std::max(longest, bar.length);
  std::string html = "<div class=\"bars\">\n";
  for (const Bar& bar : bars)
    html += fmt::format("<span>{}</span><div style=\"width: {:.2f}%\"></div><span>{}</span>\n",
                        escaped(bar.name), scaled(bar.length, longest) / 10, escaped(bar.text));
  return html + "</div>\n";
}

}  // namespace snug::report
