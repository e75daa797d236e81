#include "text/tokenizer/steps/pattern.h"

#include <stdexcept>
#include <vector>

#include "text/tokenizer/model/growth.h"

namespace snug::text {

Regex read_pattern(const JsonNode& component) {
  const JsonNode pattern = component.object("pattern");
  pattern.only_keys({"String", "Regex"});
  if (pattern.has("String")) return Regex::literal(pattern.string("String"));
  try {
    return Regex(pattern.string("Regex"));
  } catch (const std::invalid_argument& error) {
    pattern.fail(error.what());
  }
}

void replace_all(std::string& text, const Regex& pattern, std::string_view content, size_t most) {
  std::vector<Range> matches;
  pattern.find_all(text, matches);
  if (matches.empty()) return;
  size_t bytes = text.size() + matches.size() * content.size();
  for (const Range& match : matches) bytes -= match.end - match.begin;
  require_bounded(bytes, most);
  std::string result;
  result.reserve(bytes);
  size_t done = 0;
  for (const Range& match : matches) {
    result.append(text, done, match.begin - done);
    result += content;
    done = match.end;
  }
  result.append(text, done);
  text = std::move(result);
}

}  // namespace snug::text
