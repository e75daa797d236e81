#include "text/grammar/code_point_set.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

namespace snug::text {
namespace {

constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;
constexpr char32_t kLastCodePoint = 0x10FFFF;

// All characters for which `is_in` holds, given a character and the two letters of its category.
template <typename Predicate>
CodePointSet characters_where(Predicate is_in) {
  CodePointSet set;
  for (char32_t value = 0; value <= kLastCodePoint; ++value) {
    if (value == kFirstSurrogate) value = kLastSurrogate + 1;
    const auto point = static_cast<utf8proc_int32_t>(value);
    if (is_in(value, std::string_view(utf8proc_category_string(point)))) set.add(value, value);
  }
  return set;
}

// Characters and their other cases.
const std::vector<std::pair<char32_t, char32_t>>& case_pairs() {
  static const auto kPairs = [] {
    std::vector<std::pair<char32_t, char32_t>> pairs;
    for (char32_t value = 0; value <= kLastCodePoint; ++value) {
      const auto point = static_cast<utf8proc_int32_t>(value);
      for (const utf8proc_int32_t other : {utf8proc_tolower(point), utf8proc_toupper(point)})
        if (other != point) pairs.emplace_back(value, static_cast<char32_t>(other));
    }
    return pairs;
  }();
  return kPairs;
}

}  // namespace

void CodePointSet::add(char32_t first, char32_t last) {
  if (first < kFirstSurrogate && last > kLastSurrogate) {
    add(first, kFirstSurrogate - 1);
    return add(kLastSurrogate + 1, last);
  }
  if (first >= kFirstSurrogate && first <= kLastSurrogate) first = kLastSurrogate + 1;
  if (last >= kFirstSurrogate && last <= kLastSurrogate) last = kFirstSurrogate - 1;
  if (first > last) return;
  // The ranges that touch the new one become one with it.
  const auto begin = std::ranges::lower_bound(
      ranges_, first, {}, [](const CodePointRange& range) { return range.last + 1; });
  auto end = begin;
  for (; end != ranges_.end() && end->first <= last + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void CodePointSet::add(const CodePointSet& other) {
  for (const CodePointRange& range : other.ranges_) add(range.first, range.last);
}

CodePointSet CodePointSet::complement() const {
  CodePointSet rest;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) rest.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) rest.add(next, kLastCodePoint);
  return rest;
}

CodePointSet CodePointSet::without(const CodePointSet& other) const {
  CodePointSet rest = complement();
  rest.add(other);
  return rest.complement();
}

bool CodePointSet::contains(char32_t value) const {
  const auto at = std::ranges::lower_bound(ranges_, value, {}, &CodePointRange::last);
  return at != ranges_.end() && at->first <= value;
}

CodePointSet digit_characters(bool ascii) {
  if (ascii) return {'0', '9'};
  static const CodePointSet kDigits = characters_of_category("Nd");
  return kDigits;
}

CodePointSet word_characters(bool ascii) {
  CodePointSet set;
  if (!ascii) {
    static const CodePointSet kWord = characters_where([](char32_t, std::string_view category) {
      return category[0] == 'L' || category[0] == 'N';
    });
    set = kWord;
  }
  for (const auto& [first, last] : {std::pair{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}})
    set.add(static_cast<char32_t>(first), static_cast<char32_t>(last));
  return set;
}

CodePointSet space_characters(bool ascii) {
  CodePointSet set(0x09, 0x0D);
  set.add(' ', ' ');
  if (ascii) return set;
  // As str.isspace() has it, with the four separators of ASCII.
  for (const auto& [first, last] : {std::pair{0x1C, 0x1F},
                                    {0x85, 0x85},
                                    {0xA0, 0xA0},
                                    {0x1680, 0x1680},
                                    {0x2000, 0x200A},
                                    {0x2028, 0x2029},
                                    {0x202F, 0x202F},
                                    {0x205F, 0x205F},
                                    {0x3000, 0x3000}})
    set.add(static_cast<char32_t>(first), static_cast<char32_t>(last));
  return set;
}

CodePointSet characters_of_category(std::string_view name) {
  constexpr std::string_view kNames =
      " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C "
      "Cc Cf Cn Co ";
  const std::string_view spaced = kNames;
  const size_t at = name.empty() ? std::string_view::npos : spaced.find(name);
  const bool is_known = at != std::string_view::npos && spaced[at - 1] == ' ' &&
                        spaced[at + name.size()] == ' ' && name.find(' ') == std::string_view::npos;
  if (!is_known) return {};
  return characters_where(
      [&](char32_t, std::string_view category) { return category.starts_with(name); });
}

CodePointSet with_other_cases(const CodePointSet& set) {
  CodePointSet all = set;
  // Twice, since two characters may have the third in common: the sign of kelvin is an upper k.
  for (int round = 0; round < 2; ++round) {
    for (const auto& [one, other] : case_pairs()) {
      if (all.contains(one)) all.add(other, other);
      if (all.contains(other)) all.add(one, one);
    }
  }
  return all;
}

}  // namespace snug::text
