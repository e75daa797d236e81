#include "plan/change.h"

#include <fmt/format.h>

namespace snug::plan {

std::string to_string(const Overrides& overrides) {
  std::string text;
  for (const auto& [key, value] : overrides)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

}  // namespace snug::plan
