// What a user asked one verb to do: an optional recipe file, words of the form key=value, --json.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/recipe.h"

namespace snug::cli {

struct Request {
  std::string recipe_file;             // empty: none
  std::vector<std::string> overrides;  // key=value, each key once
  bool json = false;
  std::vector<std::string_view> keys;  // of the verb

  // Removes the words that take(key, value) takes: those that are the verb's own and no keys of a
  // recipe.
  void take_words(const std::function<bool(const std::string&, const std::string&)>& take);

  // Reads the recipe and finds what it names (input_paths.h). Throws UserError.
  formats::Recipe recipe(std::span<const std::string_view> may_be_missing = {}) const;
};

// Sorts words into the recipe file and the overrides. Of words that set the same key, under
// whatever name, the last one counts, so that a line can be run again with changes put after it.
// Throws UserError for two files and for a word that is neither.
Request make_request(const std::vector<std::string>& words, bool json);

}  // namespace snug::cli
