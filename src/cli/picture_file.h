// The page that `picture=FILE` asks for: where it may be written. A slip of the pen must not
// replace a recipe or data.
#pragma once

#include <string>

#include "formats/recipe/recipe.h"

namespace snug::cli {

// Throws UserError where something else than a page has the file's name already. To be called
// before the work.
void require_picture_file(const formats::Recipe& recipe);

// Writes the page where one is asked for, and says so; `what`: "plan".
void write_picture(const formats::Recipe& recipe, const std::string& page, const char* what);

}  // namespace snug::cli
