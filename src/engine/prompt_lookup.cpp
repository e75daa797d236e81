#include "engine/prompt_lookup.h"

#include <algorithm>
#include <optional>

namespace snug::engine {
namespace {

// Where the text goes on after the latest earlier occurrence of its last `alike` tokens.
std::optional<size_t> after_occurrence(std::span<const int32_t> text, size_t alike) {
  const std::span<const int32_t> last = text.last(alike);
  for (size_t end = text.size() - 1; end >= alike; --end)
    if (std::ranges::equal(text.subspan(end - alike, alike), last)) return end;
  return std::nullopt;
}

}  // namespace

Ids looked_up(std::span<const int32_t> text, int64_t most) {
  Ids guess;
  for (size_t alike = kMostAlike; alike >= kLeastAlike && most > 0; --alike) {
    if (text.size() <= alike) continue;
    const std::optional<size_t> next = after_occurrence(text, alike);
    if (!next) continue;
    guess.reserve(static_cast<size_t>(most));
    for (size_t i = *next; std::ssize(guess) < most; ++i)
      guess.push_back(i < text.size() ? text[i] : guess[i - text.size()]);
    break;
  }
  return guess;
}

}  // namespace snug::engine
