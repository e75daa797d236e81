// The keys that a user wrote in a recipe and on the command line, as one flat list. The name of a
// nested value contains all keys above it: lr_scheduler_kwargs.min_lr. Inside a list of maps it has
// no index: datasets.path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mistakes.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::formats {

// Throws UserError for YAML that is broken or is not a map of keys; `file` names it. A problem with
// a single key is added to the mistakes.
std::vector<Written> written_in_yaml(std::string_view yaml, const std::string& file,
                                     base::Mistakes& mistakes);

// Overrides have the form key=value, where the value may be a map in braces.
std::vector<Written> written_in_overrides(const std::vector<std::string>& overrides,
                                          base::Mistakes& mistakes);

}  // namespace snug::formats
