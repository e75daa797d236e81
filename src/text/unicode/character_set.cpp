#include "text/unicode/character_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace snug::text {

namespace {

// Whether the members are a single property, which needs no brackets and is faster without them.
bool is_one_property(std::string_view members) {
  return (members.starts_with("\\p{") || members.starts_with("\\P{")) &&
         members.find('}') == members.size() - 1;
}

}  // namespace

std::string CharacterSet::pattern() const {
  if (is_one_property(members)) return members;
  if (!members.empty()) return fmt::format("[{}]", members);
  if (!others.empty()) return fmt::format("[^{}]", others);
  return expression;
}

CharacterSet set_of(std::string_view members) { return {std::string(members), {}, {}}; }
CharacterSet all_but(std::string_view members) { return {{}, std::string(members), {}}; }

CharacterSet complement(CharacterSet set) {
  std::swap(set.members, set.others);
  if (!set.expression.empty()) set.expression = fmt::format("(?:(?!{})\\p{{Any}})", set.expression);
  return set;
}

// The group is atomic, since only one way to match a character is ever needed.
CharacterSet unite(const std::vector<CharacterSet>& sets) {
  if (sets.size() == 1) return sets.front();
  CharacterSet result;
  std::string rest;
  for (const CharacterSet& set : sets) {
    result.members += set.members;
    if (!set.is_plain()) rest += fmt::format("|{}", set.pattern());
  }
  if (rest.empty()) {
    if (sets.empty()) result.expression = "(?!)";
    return result;
  }
  if (!result.members.empty()) rest.insert(0, std::exchange(result, {}).pattern());
  result.expression = fmt::format("(?>{})", rest.starts_with('|') ? rest.substr(1) : rest);
  return result;
}

CharacterSet intersect(const std::vector<CharacterSet>& sets) {
  if (sets.size() == 1) return sets.front();
  if (std::ranges::all_of(sets, [](const CharacterSet& set) { return !set.others.empty(); })) {
    CharacterSet result;
    for (const CharacterSet& set : sets) result.others += set.others;
    return result;
  }
  std::string all = "(?:";
  for (size_t i = 0; i + 1 < sets.size(); ++i) all += fmt::format("(?={})", sets[i].pattern());
  return {{}, {}, all + sets.back().pattern() + ")"};
}

std::string literal_character(char32_t value) {
  const bool is_letter = (value >= 'a' && value <= 'z') || (value >= 'A' && value <= 'Z');
  if (is_letter || (value >= '0' && value <= '9')) return {static_cast<char>(value)};
  return fmt::format("\\x{{{:X}}}", static_cast<uint32_t>(value));
}

}  // namespace snug::text
