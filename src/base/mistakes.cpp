#include "base/mistakes.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

namespace snug::base {

namespace {

// The location that to_string(Location) put before a mistake.
struct Place {
  std::string_view file;
  int line = 0;
  int column = 0;
};

// Parses "file:line:column: " at the beginning of the text, if it is there.
std::optional<Place> place_of(std::string_view text) {
  Place place;
  const std::string_view whole = text.substr(0, text.find(": "));
  const size_t column = whole.rfind(':');
  if (column == std::string_view::npos || column == 0) return std::nullopt;
  const size_t line = whole.rfind(':', column - 1);
  if (line == std::string_view::npos || line == 0) return std::nullopt;
  const auto read = [&](size_t first, size_t end, int& number) {
    const auto [stop, error] = std::from_chars(whole.data() + first, whole.data() + end, number);
    return error == std::errc() && stop == whole.data() + end;
  };
  place.file = whole.substr(0, line);
  if (!read(line + 1, column, place.line) || !read(column + 1, whole.size(), place.column))
    return std::nullopt;
  return place;
}

// Sorts mistakes as Mistakes::throw_if_any says.
std::vector<std::string> in_order(const std::vector<std::string>& mistakes) {
  std::vector<std::string_view> files;  // in the order of their first mistakes
  const auto rank_of = [&](const std::string& mistake) {
    const auto place = place_of(mistake);
    if (!place) return std::tuple{std::numeric_limits<ptrdiff_t>::max(), 0, 0};
    auto file = std::ranges::find(files, place->file);
    if (file == files.end()) file = files.insert(files.end(), place->file);
    return std::tuple{file - files.begin(), place->line, place->column};
  };
  std::vector<std::pair<std::tuple<ptrdiff_t, int, int>, const std::string*>> ranked;
  ranked.reserve(mistakes.size());
  for (const std::string& mistake : mistakes) ranked.emplace_back(rank_of(mistake), &mistake);
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> ordered;
  ordered.reserve(ranked.size());
  for (const auto& entry : ranked) ordered.push_back(*entry.second);
  return ordered;
}

}  // namespace

UserErrors::UserErrors(std::vector<std::string> mistakes)
    : UserError(fmt::format("{}", fmt::join(mistakes, "\n"))), mistakes_(std::move(mistakes)) {}

void Mistakes::add(const std::string& message, const Location& location) {
  std::string mistake = to_string(location) + message;
  if (std::find(all_.begin(), all_.end(), mistake) == all_.end())
    all_.push_back(std::move(mistake));
}

void Mistakes::throw_if_any() const {
  if (all_.size() == 1) throw UserError(all_.front());
  if (!all_.empty()) throw UserErrors(in_order(all_));
}

}  // namespace snug::base
