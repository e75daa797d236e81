#include "cli/open_target.h"

namespace snug::cli {

std::unique_ptr<backends::Backend> open_target(const formats::Recipe& recipe) {
  const char* name = recipe.backend == formats::BackendName::cpu ? "cpu" : "reference";
  return backends::open_backend(name, {.threads = static_cast<int>(recipe.threads),
                                       .device_memory_bytes = recipe.device_memory});
}

}  // namespace snug::cli
