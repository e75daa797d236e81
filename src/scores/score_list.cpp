#include "scores/score_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/nearest.h"
#include "scores/score_table.h"

namespace snug::scores {
namespace {

std::vector<std::string_view> score_names() {
  std::vector<std::string_view> names;
  names.reserve(score_table().size());
  for (const ScoreRow& row : score_table()) names.push_back(row.name);
  return names;
}

std::string_view name_in(std::string_view written) { return written.substr(0, written.find(':')); }

// Whether commas may be part of what is written here.
bool takes_commas(std::string_view written) {
  const ScoreRow* row = find_score(name_in(written));
  return row != nullptr && row->argument != ScoreArgument::none &&
         written.size() > row->name.size();
}

std::vector<std::string> pieces_of(const std::vector<std::string>& list) {
  std::vector<std::string> pieces;
  pieces.reserve(list.size());
  for (const std::string& item : list) {
    bool goes_on = false;
    for (size_t begin = 0; begin <= item.size();) {
      const size_t end = std::min(item.find(',', begin), item.size());
      const std::string_view written = std::string_view(item).substr(begin, end - begin);
      const std::string_view piece =
          written.substr(std::min(written.find_first_not_of(' '), written.size()));
      goes_on = goes_on && takes_commas(pieces.back()) && find_score(name_in(piece)) == nullptr;
      if (goes_on)
        (pieces.back() += ',') += written;
      else
        pieces.emplace_back(piece);
      goes_on = true;
      begin = end + 1;
    }
  }
  return pieces;
}

// Throws std::invalid_argument.
Score score_of(const std::string& written) {
  const std::string_view name = name_in(written);
  const ScoreRow* row = find_score(name);
  if (row == nullptr) {
    const auto nearest = base::nearest_slip(name, score_names());
    throw std::invalid_argument(
        nearest
            ? fmt::format("there is no such score; did you mean {}?", *nearest)
            : fmt::format("there is no such score; there are {}", fmt::join(score_names(), ", ")));
  }
  const bool has_argument = written.size() > name.size();
  const std::string argument = has_argument ? written.substr(name.size() + 1) : std::string();
  if (has_argument && row->argument == ScoreArgument::none)
    throw std::invalid_argument(
        fmt::format("{} takes nothing after a colon; leave ':{}' out", name, argument));
  if (argument.empty() && (has_argument || row->argument == ScoreArgument::required))
    throw std::invalid_argument(
        fmt::format("{0} needs its {1} after a colon: {0}:{1}", name, row->argument_name));
  try {
    return {written, row->needs_reference, row->judge(argument)};
  } catch (const base::UserError& error) {
    throw std::invalid_argument(error.what());
  }
}

std::optional<double> weight_in(std::string_view text) {
  double weight = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(weight))
    return std::nullopt;
  return weight;
}

WeighedScore weighed_score_of(const std::string& written) {
  const size_t colon = written.rfind(':');
  if (colon == std::string::npos) return {score_of(written)};
  const auto weight = weight_in(std::string_view(written).substr(colon + 1));
  if (!weight) return {score_of(written)};
  return {score_of(written.substr(0, colon)), *weight};
}

template <typename Read>
auto read_list(const formats::Recipe& recipe, std::string_view key,
               const std::vector<std::string>& list, const Read& read) {
  std::vector<decltype(read(std::string()))> scores;
  const std::vector<std::string> pieces = pieces_of(list);
  scores.reserve(pieces.size());
  for (const std::string& piece : pieces) {
    if (piece.empty())
      recipe.fail(key,
                  fmt::format("lacks a name: it is empty or has a comma too many; there are {}",
                              fmt::join(score_names(), ", ")));
    if (std::ranges::count(pieces, piece) > 1)
      recipe.fail(key, fmt::format("has '{}' twice; keep one", piece));
    try {
      scores.push_back(read(piece));
    } catch (const std::invalid_argument& error) {
      recipe.fail(key, fmt::format("has '{}', but {}", piece, error.what()));
    }
  }
  return scores;
}

}  // namespace

std::vector<Score> scores_of_list(const formats::Recipe& recipe, std::string_view key,
                                  const std::vector<std::string>& list) {
  return read_list(recipe, key, list, score_of);
}

std::vector<WeighedScore> weighed_scores_of_list(const formats::Recipe& recipe,
                                                 std::string_view key,
                                                 const std::vector<std::string>& list) {
  return read_list(recipe, key, list, weighed_score_of);
}

}  // namespace snug::scores
