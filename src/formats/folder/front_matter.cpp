#include "formats/folder/front_matter.h"

#include <algorithm>

namespace snug::formats {

std::string front_matter(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  constexpr std::string_view kFence = "---";
  if (begin == std::string_view::npos || !text.substr(begin).starts_with(kFence)) return "";
  const size_t from = text.find('\n', begin);
  if (from == std::string_view::npos ||
      text.substr(begin + kFence.size(), from - begin - kFence.size()).find_first_not_of(" \t\r") !=
          std::string_view::npos)
    return "";
  for (size_t at = text.find("\n---", from); at != std::string_view::npos;
       at = text.find("\n---", at + 1)) {
    const size_t end = text.find_first_not_of(" \t\r", at + 1 + kFence.size());
    if (end != std::string_view::npos && text[end] != '\n') continue;
    const auto lines = static_cast<size_t>(std::ranges::count(text.substr(0, from + 1), '\n'));
    return std::string(lines, '\n') + std::string(text.substr(from + 1, at - from));
  }
  return "";
}

}  // namespace snug::formats
