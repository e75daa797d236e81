// Opens the backend that a recipe names, with the recipe's options.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "formats/recipe/recipe.h"

namespace snug::backends {

// Throws UserError for a backend that is not built, and for cuda without a GPU. `mesh` connects the
// ranks of the job, and must outlive the backend; null for a single rank.
std::unique_ptr<Backend> open_backend(const formats::Recipe& recipe,
                                      const comm::Mesh* mesh = nullptr);

}  // namespace snug::backends
