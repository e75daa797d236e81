#include "train/rewards/shared_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace snug::train {
namespace {

using engine::Turn;
using program::ProgramName;

// "p7" reads seven tokens, "d7" goes on with seven answers, "" is done.
std::string text_of(const std::optional<Turn>& turn) {
  if (!turn) return "";
  return fmt::format("{}{}", turn->program == ProgramName::prefill ? 'p' : 'd', turn->tokens);
}

std::optional<Turn> turn_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return Turn{text.front() == 'p' ? ProgramName::prefill : ProgramName::decode,
              std::stoll(text.substr(1))};
}

std::optional<Turn> first_of(const std::vector<std::string>& texts) {
  const auto rank_of = [](const Turn& turn) {
    return std::pair{turn.program == ProgramName::prefill, turn.tokens};
  };
  std::optional<Turn> first;
  for (const std::string& text : texts) {
    const std::optional<Turn> turn = turn_of(text);
    if (turn && (!first || rank_of(*turn) > rank_of(*first))) first = turn;
  }
  return first;
}

}  // namespace

std::optional<std::vector<LearnedAnswer>> answers_of_all(
    std::optional<std::vector<LearnedAnswer>> own, const runtime::Ranks& ranks) {
  if (ranks.size() == 1) return own;
  const std::vector<std::string> texts =
      ranks.of_all(own ? to_json({.answers = std::move(*own)}) : std::string());
  if (std::ranges::any_of(texts, &std::string::empty)) return std::nullopt;
  std::vector<LearnedAnswer> all;
  for (const std::string& text : texts)
    std::ranges::move(parse_generation(text).answers, std::back_inserter(all));
  return all;
}

engine::AgreeOnTurn turns_of(const runtime::Ranks& ranks) {
  return [&ranks](const std::optional<Turn>& own) { return first_of(ranks.of_all(text_of(own))); };
}

}  // namespace snug::train
