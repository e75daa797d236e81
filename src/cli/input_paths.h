// Resolves the paths in a recipe file. A relative path is looked up in the current folder first,
// then in the recipe's own, so that a recipe and its data can be moved together and run from
// anywhere. This holds for what a job reads; what it writes (output_dir, logits_out) and paths on
// the command line are relative to the current folder.
#pragma once

#include <span>
#include <string_view>

#include "formats/recipe/recipe.h"

namespace snug::cli {

// For those of `keys` that the recipe's file sets: replaces a relative path by the path at which
// the file or folder exists. Built-in names (of models, of chat templates) and names that the cache
// of the Hugging Face hub holds are left alone. Throws UserError, naming both places, where a path
// exists at neither, except for the keys in `may_be_missing`.
void find_inputs(formats::Recipe& recipe, std::span<const std::string_view> keys,
                 std::span<const std::string_view> may_be_missing);

}  // namespace snug::cli
