#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -lowest;
  for (const double y : chart.y) {
    if (!std::isfinite(y)) continue;
    lowest = std::min(lowest, y);
    highest = std::max(highest, y);
  }
  if (lowest > highest) return "";
  if (lowest == highest) {
    const double around = lowest == 0 ? 1 : std::abs(lowest) / 10;
    lowest -= around;
    highest += around;
  }
  const double first = chart.x.front();
  const double width = chart.x.back() - first;
  std::string path;
  bool is_open = false;
  for (size_t i = 0; i < chart.x.size(); ++i) {
    if (!std::isfinite(chart.y[i])) {
      is_open = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", is_open ? "L" : "M", scaled(chart.x[i] - first, width),
                        kSize - scaled(chart.y[i] - lowest, highest - lowest));
    if (!is_open) path += "h0.01";  // a line of this length makes a single point visible
    is_open = true;
  }
  return "<div class=\"chart\">\n" + labels("y", highest, lowest, chart.text_of_y) +
         "<div class=\"plot low\">" + open_svg() +
         fmt::format("<path class=\"curve\" stroke=\"{}\" d=\"{}\"/>\n", colour_of(chart.colour),
                     path) +
         "</svg></div>\n" + labels("x", first, first + width, chart.text_of_x) + "</div>\n";
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
