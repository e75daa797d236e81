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

using Names = std::span<const std::string_view>;

std::vector<std::string_view> known_names(Names others) {
  std::vector<std::string_view> names;
  names.reserve(score_table().size() + others.size());
  for (const ScoreRow& row : score_table()) names.push_back(row.name);
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

// Whether a name must have an argument.
bool needs_argument(std::string_view name, Names others) {
  const ScoreRow* row = find_score(name);
  if (row != nullptr) return row->argument == ScoreArgument::required;
  return std::ranges::find(others, name) != others.end();
}

// Whether commas may be part of what is written here.
bool takes_commas(std::string_view written, Names others) {
  const std::string_view name = name_in(written);
  const ScoreRow* row = find_score(name);
  const bool may_have_argument = row != nullptr ? row->argument != ScoreArgument::none
                                                : std::ranges::find(others, name) != others.end();
  return may_have_argument && written.size() > name.size();
}

std::vector<std::string> pieces_of(const std::vector<std::string>& list, Names others) {
  const std::vector<std::string_view> names = known_names(others);
  const auto begins_name = [&](std::string_view piece) {
    return std::ranges::find(names, name_in(piece)) != names.end();
  };
  std::vector<std::string> pieces;
  pieces.reserve(list.size());
  for (const std::string& item : list) {
    bool goes_on = false;
    for (size_t begin = 0; begin <= item.size();) {
      const size_t end = std::min(item.find(',', begin), item.size());
      const std::string_view written = std::string_view(item).substr(begin, end - begin);
      const std::string_view piece =
          written.substr(std::min(written.find_first_not_of(' '), written.size()));
      goes_on = goes_on && takes_commas(pieces.back(), others) && !begins_name(piece);
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
Score score_of(const std::string& written, Names others) {
  const std::string_view name = name_in(written);
  const ScoreRow* row = find_score(name);
  if (row == nullptr) {
    const std::vector<std::string_view> names = known_names(others);
    const auto nearest = base::nearest_slip(name, names);
    throw std::invalid_argument(
        nearest ? fmt::format("there is no such score; did you mean {}?", *nearest)
                : fmt::format("there is no such score; there are {}", fmt::join(names, ", ")));
  }
  const bool has_argument = written.size() > name.size();
  const std::string argument(argument_in(written));
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

WeighedName weighed_name_of(const std::string& written, Names others) {
  const size_t colon = written.rfind(':');
  if (colon == std::string::npos) return {written};
  const auto weight = weight_in(std::string_view(written).substr(colon + 1));
  const std::string before = written.substr(0, colon);
  const bool is_argument = needs_argument(before, others);
  if (!weight || is_argument) return {written};
  return {before, *weight};
}

// The items of a list, none of which is empty.
std::vector<std::string> read_list(const formats::Recipe& recipe, std::string_view key,
                                   const std::vector<std::string>& list, Names others) {
  std::vector<std::string> pieces = pieces_of(list, others);
  for (const std::string& piece : pieces)
    if (piece.empty())
      recipe.fail(key,
                  fmt::format("lacks a name: it is empty or has a comma too many; there are {}",
                              fmt::join(known_names(others), ", ")));
  return pieces;
}

void refuse_twice(const formats::Recipe& recipe, std::string_view key, const std::string& name) {
  recipe.fail(key, fmt::format("has '{}' twice; keep one", name));
}

}  // namespace

std::string_view name_in(std::string_view written) { return written.substr(0, written.find(':')); }

std::string_view argument_in(std::string_view written) {
  const size_t colon = written.find(':');
  return colon == std::string_view::npos ? std::string_view() : written.substr(colon + 1);
}

Score score_of_name(const formats::Recipe& recipe, std::string_view key, const std::string& written,
                    std::span<const std::string_view> others) {
  try {
    return score_of(written, others);
  } catch (const std::invalid_argument& error) {
    recipe.fail(key, fmt::format("has '{}', but {}", written, error.what()));
  }
}

std::vector<Score> scores_of_list(const formats::Recipe& recipe, std::string_view key,
                                  const std::vector<std::string>& list) {
  std::vector<Score> scores;
  const std::vector<std::string> pieces = read_list(recipe, key, list, {});
  scores.reserve(pieces.size());
  for (const std::string& piece : pieces) {
    if (std::ranges::count(pieces, piece) > 1) refuse_twice(recipe, key, piece);
    scores.push_back(score_of_name(recipe, key, piece));
  }
  return scores;
}

std::vector<WeighedName> weighed_names_of_list(const formats::Recipe& recipe, std::string_view key,
                                               const std::vector<std::string>& list,
                                               std::span<const std::string_view> others) {
  std::vector<WeighedName> names;
  const std::vector<std::string> pieces = read_list(recipe, key, list, others);
  names.reserve(pieces.size());
  for (const std::string& piece : pieces) {
    names.push_back(weighed_name_of(piece, others));
    if (std::ranges::count(names, names.back().written, &WeighedName::written) > 1)
      refuse_twice(recipe, key, names.back().written);
  }
  return names;
}

}  // namespace snug::scores
