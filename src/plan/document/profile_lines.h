// Where measured time went: operations that are alike share one line, next to the time that the
// clock predicted for them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/time/rates.h"

namespace snug::plan {

// A line about one run of what is profiled (a step, a token).
struct ProfileLine {
  std::string name;  // line_of their rate keys
  double count = 0;
  double seconds = 0;
  double planned_seconds = 0;  // what the clock says of the same operations
  double work = 0;
  Work unit = Work::bytes;
};

// The longest first.
void sort_lines(std::vector<ProfileLine>& lines);
// Each with its share of all, its seconds, those planned, its count and the rate of its work.
std::string text_of(const std::vector<ProfileLine>& lines);
nlohmann::json json_of(const std::vector<ProfileLine>& lines);

}  // namespace snug::plan
