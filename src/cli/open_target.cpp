#include "cli/open_target.h"

namespace snug::cli {

std::unique_ptr<backends::Backend> open_target(const formats::Recipe& recipe) {
  return backends::open_backend(
      formats::name_of(recipe.backend),
      {.threads = static_cast<int>(recipe.threads), .device_memory_bytes = recipe.device_memory});
}

}  // namespace snug::cli
