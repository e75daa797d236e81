#include "scores/score.h"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::scores {
namespace {

std::string_view without_space(std::string_view text) {
  return text::jinja::strip(text, text::jinja::Side::both);
}

// Regular expressions report what they cannot do by std::invalid_argument.
template <typename Function>
auto judged(const std::string& name, Function judge) {
  try {
    return judge();
  } catch (const std::invalid_argument& error) {
    throw base::UserError(fmt::format("score {}: {}", name, error.what()));
  }
}

}  // namespace

double Score::of(std::string_view answer, std::string_view reference) const {
  return judged(name_, [&] { return judge_.one(without_space(answer), without_space(reference)); });
}

double Score::of_all(std::span<const ScoredAnswer> answers) const {
  SNUG_CHECK(!answers.empty(), "{} of no answers", name_);
  if (!is_mean()) {
    std::vector<ScoredAnswer> stripped;
    stripped.reserve(answers.size());
    for (const ScoredAnswer& one : answers)
      stripped.push_back({without_space(one.answer), without_space(one.reference)});
    return judge_.all(stripped);
  }
  double sum = 0;
  for (const ScoredAnswer& one : answers) sum += of(one.answer, one.reference);
  return sum / static_cast<double>(answers.size());
}

std::string Score::problem_of(std::string_view reference) const {
  if (!judge_.problem) return {};
  return judged(name_, [&] { return judge_.problem(without_space(reference)); });
}

}  // namespace snug::scores
