#include "plan/document/profile_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace snug::plan {

void sort_lines(std::vector<ProfileLine>& lines) {
  std::ranges::sort(
      lines, [](const ProfileLine& a, const ProfileLine& b) { return a.seconds > b.seconds; });
}

std::string text_of(const std::vector<ProfileLine>& lines) {
  double all_seconds = 0;
  for (const ProfileLine& line : lines) all_seconds += line.seconds;
  std::string text;
  for (const ProfileLine& line : lines)
    text += fmt::format("{:5.1f} % {:9.3f} ms, planned {:9.3f} {:5.0f} x  {:7.1f} {}  {}\n",
                        100 * line.seconds / all_seconds, line.seconds * 1e3,
                        line.planned_seconds * 1e3, line.count, line.work / line.seconds * 1e-9,
                        line.unit == Work::flops ? "GFLOP/s" : "GB/s   ", line.name);
  return text;
}

nlohmann::json json_of(const std::vector<ProfileLine>& lines) {
  nlohmann::json list = nlohmann::json::array();
  for (const ProfileLine& line : lines)
    list.push_back({{"name", line.name},
                    {"count", line.count},
                    {"seconds", line.seconds},
                    {"planned_seconds", line.planned_seconds},
                    {"work", line.work},
                    {"unit", base::word_of(line.unit)}});
  return list;
}

}  // namespace snug::plan
