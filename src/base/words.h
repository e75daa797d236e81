// The names of an enumeration's values in recipes, texts, files and messages. They are written
// once, next to the enumeration, as a constexpr function words_of(Enum) that is found by
// argument-dependent lookup and returns an array of Word<Enum>, one for each value:
//
//   enum class Space : uint8_t { device, host };
//   constexpr auto words_of(Space) {
//     return base::words<Space>({{Space::device, "device"}, {Space::host, "host"}});
//   }
//
// Printing, parsing, lists of choices and error messages all use it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace snug::base {

template <typename Enum>
struct Word {
  Enum value;
  std::string_view text;
};

template <typename Enum, size_t N>
constexpr std::array<Word<Enum>, N> words(const Word<Enum> (&list)[N]) {
  return std::to_array(list);
}

template <typename Enum>
inline constexpr auto kWordsOf = words_of(Enum{});

// Empty for a number that is not a value of the enumeration.
template <typename Enum>
constexpr std::string_view word_of(Enum value) {
  for (const Word<Enum>& word : kWordsOf<Enum>)
    if (word.value == value) return word.text;
  return {};
}

template <typename Enum>
constexpr std::optional<Enum> from_word(std::string_view text) {
  for (const Word<Enum>& word : kWordsOf<Enum>)
    if (word.text == text) return word.value;
  return std::nullopt;
}

// The names of all values, in the order of the list.
template <typename Enum>
std::vector<std::string_view> all_words() {
  std::vector<std::string_view> texts;
  texts.reserve(std::size(kWordsOf<Enum>));
  for (const Word<Enum>& word : kWordsOf<Enum>) texts.push_back(word.text);
  return texts;
}

}  // namespace snug::base
