#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

namespace snug::base {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

std::string digits_of(std::string_view name) {
  std::string digits;
  for (const char letter : name)
    if (std::isdigit(static_cast<unsigned char>(letter)) != 0) digits += letter;
  std::ranges::sort(digits);
  return digits;
}

std::vector<std::string_view> words_in(std::string_view name) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t end = name.find_first_of("_.- ");
    words.push_back(name.substr(0, end));
    if (end == std::string_view::npos) return words;
    name.remove_prefix(end + 1);
  }
}

// A letter that was left out, doubled or swapped is a slip. Another letter in a short word makes it
// a different word: top_k and top_p, use_dora and use_lora.
bool means_the_same(std::string_view a, std::string_view b) {
  constexpr size_t kLong = 5;
  if (edit_distance(a, b) == 0) return true;
  if (a.size() != b.size()) return std::max(a.size(), b.size()) >= kLong - 1;
  std::string of_a(a);
  std::string of_b(b);
  std::ranges::sort(of_a);
  std::ranges::sort(of_b);
  return of_a == of_b || a.size() >= kLong;
}

bool has_same_words(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> of_a = words_in(a);
  const std::vector<std::string_view> of_b = words_in(b);
  if (of_a.size() != of_b.size()) return true;  // the words are joined or split
  for (size_t i = 0; i < of_a.size(); ++i)
    if (!means_the_same(of_a[i], of_b[i])) return false;
  return true;
}

bool is_slip(std::string_view word, std::string_view meant) {
  constexpr size_t kLettersAnEdit = 12;
  constexpr size_t kLongName = 6;  // below it, words are too easily confused: mode, model
  if (std::max(word.size(), meant.size()) < kLongName) return false;
  const size_t most = 1 + std::max(word.size(), meant.size()) / kLettersAnEdit;
  return static_cast<size_t>(edit_distance(word, meant)) <= most &&
         digits_of(word) == digits_of(meant) && has_same_words(word, meant);
}

}  // namespace

// Keeps three rows of the usual table, since an adjacent swap looks two rows back.
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

std::optional<std::string_view> nearest_slip(std::string_view word,
                                             const std::vector<std::string_view>& candidates) {
  const auto nearest = nearest_name(word, candidates);
  return nearest && is_slip(word, *nearest) ? nearest : std::nullopt;
}

}  // namespace snug::base
