#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace snug::base {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

// Three rows of the usual table: an adjacent swap looks two rows back.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) current[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = previous[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

std::optional<std::string_view> nearest_name(std::string_view word,
                                             const std::vector<std::string_view>& candidates) {
  std::optional<std::string_view> best;
  int best_distance = std::numeric_limits<int>::max();
  for (const std::string_view candidate : candidates) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    const size_t most = std::max<size_t>(1, longer / 3);
    if (longer - shorter > most) continue;
    const int distance = edit_distance(word, candidate);
    const auto edits = static_cast<size_t>(distance);
    if (distance >= best_distance || edits > most || edits >= longer) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

}  // namespace snug::base
