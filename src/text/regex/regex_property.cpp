// Sources: Oniguruma doc/RE and doc/UNICODE_PROPERTIES, pcre2pattern(3). Each set was compared with
// the library's, character by character.
#include "text/regex/regex_property.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace snug::text {
namespace {

constexpr std::string_view kWordMembers = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside of brackets, Oniguruma looks up Latin-1 characters in a separate table, which counts
// superscript digits and fractions as word characters.
constexpr std::string_view kLatinWordMembers = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kHexMembers = "0-9a-fA-F";

using Names = std::pair<std::string_view, std::string_view>;

// General categories, whose names are the same in both engines.
constexpr std::string_view kCategories =
    " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc "
    "Cf Cn Co Cs ";

// Other properties that PCRE2 has, by their names in the form in which Oniguruma compares names.
constexpr std::array<Names, 49> kProperties = {{
    {"any", "Any"},
    {"alphabetic", "Alphabetic"},
    {"casedletter", "L&"},
    {"closepunctuation", "Pe"},
    {"connectorpunctuation", "Pc"},
    {"control", "Cc"},
    {"currencysymbol", "Sc"},
    {"dashpunctuation", "Pd"},
    {"decimalnumber", "Nd"},
    {"emoji", "Emoji"},
    {"enclosingmark", "Me"},
    {"extendedpictographic", "Extended_Pictographic"},
    {"finalpunctuation", "Pf"},
    {"format", "Cf"},
    {"ideographic", "Ideographic"},
    {"initialpunctuation", "Pi"},
    {"joincontrol", "Join_Control"},
    {"lc", "L&"},
    {"letter", "L"},
    {"letternumber", "Nl"},
    {"lineseparator", "Zl"},
    {"lowercase", "Lowercase"},
    {"lowercaseletter", "Ll"},
    {"mark", "M"},
    {"mathsymbol", "Sm"},
    {"modifierletter", "Lm"},
    {"modifiersymbol", "Sk"},
    {"nonspacingmark", "Mn"},
    {"number", "N"},
    {"openpunctuation", "Ps"},
    {"other", "C"},
    {"otherletter", "Lo"},
    {"othernumber", "No"},
    {"otherpunctuation", "Po"},
    {"othersymbol", "So"},
    {"paragraphseparator", "Zp"},
    {"privateuse", "Co"},
    {"punct", "P"},  // [:punct:] also includes symbols
    {"punctuation", "P"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"spacingmark", "Mc"},
    {"surrogate", "Cs"},
    {"symbol", "S"},
    {"titlecaseletter", "Lt"},
    {"unassigned", "Cn"},
    {"uppercase", "Uppercase"},
    {"uppercaseletter", "Lu"},
    {"whitespace", "White_Space"},
}};

// The sets with POSIX names, as members of a class in brackets.
constexpr std::array<Names, 12> kBracketSets = {{
    {"alnum", "\\p{Alphabetic}\\p{Nd}"},
    {"alpha", "\\p{Alphabetic}"},
    {"ascii", "\\x00-\\x7F"},
    {"blank", "\\p{Zs}\\x09"},
    {"cntrl", "\\p{Cc}"},
    {"digit", "\\p{Nd}"},
    {"lower", "\\p{Lowercase}"},
    {"punct", "\\p{P}\\p{S}"},
    {"space", "\\p{White_Space}"},
    {"upper", "\\p{Uppercase}"},
    {"word", kWordMembers},
    {"xdigit", kHexMembers},
}};
// For sets that are described by what they exclude: the excluded characters.
constexpr std::array<Names, 2> kOutsideBracketSets = {{
    {"graph", "\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}"},
    {"print", "\\p{Cc}\\p{Cn}\\p{Cs}\\p{Zl}\\p{Zp}"},
}};

template <size_t size>
std::string_view find_name(const std::array<Names, size>& table, std::string_view name) {
  const auto* const found =
      std::ranges::find_if(table, [&](const Names& names) { return names.first == name; });
  return found == table.end() ? std::string_view() : found->second;
}

CharacterSet property(std::string_view name) {
  return {fmt::format("\\p{{{}}}", name), fmt::format("\\P{{{}}}", name), {}};
}

// A property's name in the form in which Oniguruma compares names: without spaces, hyphens and
// underscores.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '-' && c != '_')
      plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return plain;
}

}  // namespace

// PCRE2 would read a script's name alone as its script extensions.
CharacterSet property_set(std::string_view name, bool within_brackets) {
  const std::string plain = plain_name(name);
  if (plain == "word") return word_set(within_brackets);
  if (const std::string_view known = find_name(kProperties, plain); !known.empty())
    return property(known);
  if (auto set = bracket_set(plain)) return std::move(*set);
  std::string category = plain;
  if (!category.empty() && category[0] >= 'a' && category[0] <= 'z')
    category[0] = static_cast<char>(category[0] - 'a' + 'A');
  if (kCategories.find(" " + category + " ") != std::string_view::npos) return property(category);
  return property("sc:" + plain);
}

std::optional<CharacterSet> bracket_set(std::string_view name) {
  if (name == "space") return white_space_set();
  if (name == "digit") return digit_set();
  if (const std::string_view members = find_name(kBracketSets, name); !members.empty())
    return set_of(members);
  if (const std::string_view others = find_name(kOutsideBracketSets, name); !others.empty())
    return all_but(others);
  return std::nullopt;
}

CharacterSet word_set(bool within_brackets) {
  return set_of(fmt::format("{}{}", kWordMembers, within_brackets ? "" : kLatinWordMembers));
}

CharacterSet white_space_set() { return property("White_Space"); }
CharacterSet digit_set() { return property("Nd"); }
CharacterSet hex_digit_set() { return set_of(kHexMembers); }

}  // namespace snug::text
