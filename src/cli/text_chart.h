// A chart of lines as text, for terminals and pipes: letters stand for lines. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace snug::cli {

struct TextLine {
  char letter = 'a';
  std::vector<double> x;  // ascending
  std::vector<double> y;  // one for each x; values that are not finite are left out
};

// Lines of text under each other, with round numbers at both axes; x counts steps. Where lines lie
// on each other, '*' stands. Empty where no value is finite.
std::string text_chart(const std::vector<TextLine>& lines, int64_t columns = 64, int64_t rows = 12);

}  // namespace snug::cli
