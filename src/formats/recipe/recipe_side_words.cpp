// Splits values of several words, such as fsdp: "full_shard auto_wrap offload".
#include "formats/recipe/recipe_keys.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

namespace snug::formats {
namespace {

std::vector<std::string> words_in(const Written& written) {
  std::vector<std::string> words;
  for (const std::string& item : written.items) {
    std::istringstream stream(item);
    for (std::string word; stream >> word;) words.push_back(word);
  }
  return words;
}

bool is_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

const SideWord* find_side_word(const RecipeKey& key, const Written& written,
                               std::string_view text) {
  for (const SideWord& side : key.side_words)
    if (side.name == written.name && is_word(text, side.word)) return &side;
  return nullptr;
}

bool takes_side_words(const RecipeKey& key, const Written& written) {
  return std::any_of(key.side_words.begin(), key.side_words.end(),
                     [&](const SideWord& side) { return side.name == written.name; });
}

// Leaves only the key's own value in `written`, and returns the keys that the other words set. A
// value is left empty where a word that stands alone takes its place.
std::vector<Written> take_side_words(const RecipeKey& key, Written& written) {
  std::vector<Written> set;
  std::vector<std::string> left;
  const std::vector<std::string> words = words_in(written);
  for (const std::string& word : words) {
    const SideWord* side = find_side_word(key, written, word);
    if (side == nullptr) {
      left.push_back(word);
    } else if (!side->key.empty()) {
      set.push_back({std::string(side->key), {std::string(side->value)}, false, written.where});
    }
  }
  if (words.empty()) return {};
  const bool stands_alone = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const SideWord* side = find_side_word(key, written, word);
    return side != nullptr && side->stands_alone;
  });
  if (left.empty() && !stands_alone)
    throw base::UserError(fmt::format("'{}' is '{}', which does not say {}; add one of {}",
                                      written.name, fmt::join(words, " "), key.name,
                                      fmt::join(words_under(key, written.name), ", ")),
                          written.where);
  written.is_list = left.size() > 1;
  written.items = std::move(left);
  return set;
}

}  // namespace

std::vector<Written> without_side_words(std::vector<Written> all, base::Mistakes& mistakes) {
  std::vector<Written> added;
  for (Written& written : all) {
    const RecipeKey* key = find_recipe_key(written.name);
    if (key == nullptr || !takes_side_words(*key, written)) continue;
    mistakes.gather([&] {
      for (Written& set : take_side_words(*key, written)) added.push_back(std::move(set));
    });
  }
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

}  // namespace snug::formats
