#include "scores/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "text/unicode/utf8.h"

namespace snug::scores {
namespace {

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    characters += c.value;
    at += c.size;
  }
  return characters;
}

// One row of the table of distances after the other: entry j is the distance of what was read of
// `answer` to the first j characters of `reference`.
int64_t distance_of(const std::u32string& answer, const std::u32string& reference) {
  std::vector<int64_t> row(reference.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (const char32_t c : answer) {
    int64_t diagonal = row[0]++;
    for (size_t j = 1; j < row.size(); ++j) {
      const int64_t changed = diagonal + (c == reference[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

}  // namespace

int64_t edit_distance(std::string_view answer, std::string_view reference) {
  return distance_of(characters_of(answer), characters_of(reference));
}

double edit_similarity(std::string_view answer, std::string_view reference) {
  const std::u32string said = characters_of(answer);
  const std::u32string expected = characters_of(reference);
  const size_t longer = std::max(said.size(), expected.size());
  if (longer == 0) return 1;
  return 1 - static_cast<double>(distance_of(said, expected)) / static_cast<double>(longer);
}

}  // namespace snug::scores
