#include "base/cache_folder.h"

#include <cstdlib>
#include <string>

namespace snug::base {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::filesystem::path cache_folder() {
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return std::filesystem::path(cache) / "snug";
  if (const std::string home = environment("HOME"); !home.empty())
    return std::filesystem::path(home) / ".cache" / "snug";
  return ".snug";
}

}  // namespace snug::base
