#include "generate/evaluation/answer_filter.h"

#include <algorithm>
#include <iterator>

#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {

std::string MatchChoice::operator()(const std::string& answer) const {
  const std::vector<base::PythonPattern::Match> matches = pattern.find_all(answer);
  const int64_t at = number < 0 ? std::ssize(matches) + number : number;
  if (at < 0 || at >= std::ssize(matches)) return otherwise;
  const base::PythonPattern::Match& match = matches[static_cast<size_t>(at)];
  const auto stripped = [](const std::string& text) {
    return std::string(text::jinja::strip(text, text::jinja::Side::both));
  };
  // With a single group Python gives its text, even where that is empty.
  if (match.size() <= 2) return stripped(match.back());
  const auto group = std::find_if(match.begin() + 1, match.end(),
                                  [](const std::string& text) { return !text.empty(); });
  return group == match.end() ? otherwise : stripped(*group);
}

}  // namespace snug::generate
