#include "formats/recipe/guard_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace snug::formats {
namespace {

constexpr std::string_view kEveryGuard = "all";
constexpr std::string_view kNoGuard = "none";
constexpr std::string_view kGuardOff = "no_";

}  // namespace

GuardSet guards_of(const Recipe& recipe) {
  const bool only_switches_off = std::ranges::all_of(
      recipe.guards, [](const std::string& word) { return word.starts_with(kGuardOff); });
  GuardSet guards = only_switches_off ? kAllGuards : GuardSet{};
  for (const std::string& word : recipe.guards)
    if (word == kEveryGuard) guards = kAllGuards;
  for (const std::string& word : recipe.guards) {
    if (word == kEveryGuard) continue;
    if (word == kNoGuard && recipe.guards.size() == 1) continue;
    const bool is_off = word.starts_with(kGuardOff);
    const auto guard = base::from_word<Guard>(is_off ? word.substr(kGuardOff.size()) : word);
    if (!guard)
      recipe.fail("guards",
                  fmt::format("names '{}'; it is {}, {}, or a list of {}, each also with {} before "
                              "it, which switches it off",
                              word, kEveryGuard, kNoGuard,
                              fmt::join(base::all_words<Guard>(), ", "), kGuardOff));
    guards.set(*guard, !is_off);
  }
  return guards;
}

}  // namespace snug::formats
