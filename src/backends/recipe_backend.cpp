#include "backends/recipe_backend.h"

namespace snug::backends {

std::unique_ptr<Backend> open_backend(const formats::Recipe& recipe) {
  return open_backend(base::word_of(recipe.backend), {.threads = static_cast<int>(recipe.threads),
                                                      .device_memory_bytes = recipe.device_memory,
                                                      .chooses_by_timing = !recipe.deterministic});
}

}  // namespace snug::backends
