// The backend that a recipe names, with what the recipe says of it.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "formats/recipe/recipe.h"

namespace snug::backends {

// Throws UserError for one that is not built, and for cuda without a card.
// `mesh` connects the ranks of the job, and must outlive the backend; null: one alone.
std::unique_ptr<Backend> open_backend(const formats::Recipe& recipe,
                                      const comm::Mesh* mesh = nullptr);

}  // namespace snug::backends
