// Where the paths of a recipe file lead. A relative one is looked for in the current folder first,
// then in the recipe's own, so that a recipe can be moved about with its data and run from
// anywhere. This holds for what a job reads; what it writes (output_dir, logits_out) and what
// stands on the command line are relative to the current folder.
#pragma once

#include <span>
#include <string_view>

#include "formats/recipe/recipe.h"

namespace snug::cli {

// Makes those of `keys` that were given in the recipe's file and hold such a path into the path of
// what is there. Built-in names (of models, of chat templates) and names that the cache of the
// Hugging Face hub holds are left alone. Throws UserError that names both places for what is at
// neither, except for the keys that `may_be_missing`.
void find_inputs(formats::Recipe& recipe, std::span<const std::string_view> keys,
                 std::span<const std::string_view> may_be_missing);

}  // namespace snug::cli
