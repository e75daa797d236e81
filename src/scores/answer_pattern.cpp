#include "scores/answer_pattern.h"

#include <optional>

#include "base/python_pattern.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::scores {
namespace {

using base::PythonPattern;

std::optional<std::string> found_text(const PythonPattern& pattern, std::string_view text) {
  const auto matches = pattern.find_all(text);
  if (matches.empty()) return std::nullopt;
  const PythonPattern::Match& first = matches.front();
  return std::string(text::jinja::strip(first[first.size() > 1 ? 1 : 0], text::jinja::Side::both));
}

}  // namespace

Judge found_text_judge(const std::string& pattern) {
  return {.one = [pattern = PythonPattern(pattern)](std::string_view answer,
                                                    std::string_view reference) -> double {
    const auto said = found_text(pattern, answer);
    return said && *said == found_text(pattern, reference).value_or(std::string(reference)) ? 1 : 0;
  }};
}

Judge whole_format_judge(const std::string& pattern) {
  return {.one = [pattern = PythonPattern(pattern, PythonPattern::Where::whole)](
                     std::string_view answer, std::string_view /*reference*/) -> double {
    return pattern.matches(answer) ? 1 : 0;
  }};
}

}  // namespace snug::scores
