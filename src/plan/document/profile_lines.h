// Where measured time went: similar operations share a line, which also has the time that the clock
// predicted for them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/time/rates.h"

namespace snug::plan {

// One line of a profile, for one run of what is profiled (a step, a token).
struct ProfileLine {
  std::string name;  // from line_of(rate key)
  double count = 0;
  double seconds = 0;
  double planned_seconds = 0;  // the clock's prediction for the same operations
  double work = 0;
  Work unit = Work::bytes;
};

// Sorts by time, the longest first.
void sort_lines(std::vector<ProfileLine>& lines);
// Each line with its share of the total, its seconds, the predicted seconds, its count and the rate
// of its work.
std::string text_of(const std::vector<ProfileLine>& lines);
nlohmann::json json_of(const std::vector<ProfileLine>& lines);

}  // namespace snug::plan
