// What a user asks one verb to do: an optional recipe file, words of the form key=value, and
// --json.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/recipe.h"

namespace snug::cli {

struct Request {
  std::string recipe_file;             // no recipe file if empty
  std::vector<std::string> overrides;  // key=value, each key once
  std::vector<std::string> folders;    // of a verb that takes folders in place of a recipe
  bool json = false;
  std::vector<std::string_view> keys;  // of the verb

  // Removes the words for which take(key, value) returns true: words that belong to the verb and
  // are not keys of a recipe.
  void take_words(const std::function<bool(const std::string&, const std::string&)>& take);

  // Reads the recipe and resolves the paths in it (input_paths.h); a model that is a GGUF file
  // becomes the folder that is made of it (gguf_model.h). Throws UserError.
  formats::Recipe recipe(std::span<const std::string_view> may_be_missing = {}) const;
};

// Sorts words into the recipe file and the overrides. Where several words set the same key, under
// its name or an alias, the last one counts, so that a command can be repeated with changes
// appended. Throws UserError for two files and for a word that is neither. `takes_folders`: words
// that are no overrides are folders.
Request make_request(const std::vector<std::string>& words, bool json, bool takes_folders = false);

}  // namespace snug::cli
