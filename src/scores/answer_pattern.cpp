#include "scores/answer_pattern.h"

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>

#include "base/console.h"
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

// Whether an answer is right; an answer on which the pattern gives up is not, and the first of them
// is told. Copies of a score share what was told.
class AnswersGivenUp {
 public:
  template <typename IsRight>
  double judge(IsRight is_right) const {
    try {
      return is_right() ? 1 : 0;
    } catch (const std::invalid_argument& error) {
      if (!told_->exchange(true))
        base::say("{}; this answer scores 0, and so does every other on which it gives up",
                  error.what());
      return 0;
    }
  }

 private:
  std::shared_ptr<std::atomic<bool>> told_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

// What an answer is compared with is found first: a pattern that gives up on a reference is an
// error.
Judge found_text_judge(const std::string& written) {
  const PythonPattern pattern(written);
  return {.one = [pattern, given_up = AnswersGivenUp()](std::string_view answer,
                                                        std::string_view reference) -> double {
            const std::string expected =
                found_text(pattern, reference).value_or(std::string(reference));
            return given_up.judge([&] { return found_text(pattern, answer) == expected; });
          },
          .problem = [pattern](std::string_view reference) -> std::string {
            found_text(pattern, reference);
            return {};
          }};
}

Judge whole_format_judge(const std::string& written) {
  return {.one = [pattern = PythonPattern(written, PythonPattern::Where::whole),
                  given_up = AnswersGivenUp()](std::string_view answer,
                                               std::string_view /*reference*/) -> double {
    return given_up.judge([&] { return pattern.matches(answer); });
  }};
}

}  // namespace snug::scores
