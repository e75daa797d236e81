#include "backends/recipe_backend.h"

namespace snug::backends {

std::unique_ptr<Backend> open_backend(const formats::Recipe& recipe, const comm::Mesh* mesh) {
  return open_backend(recipe.backend,
                      {.threads = static_cast<int>(recipe.threads),
                       .device_memory_bytes = recipe.device_memory,
                       .chooses_by_timing = !recipe.deterministic,
                       .node_ranks = recipe.devices_per_node(),
                       .mesh = mesh,
                       .timeout_seconds = static_cast<double>(recipe.timeout_seconds)});
}

}  // namespace snug::backends
