#include "engine/questions/asked_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/shown_text.h"
#include "engine/questions/prompt.h"

namespace snug::engine {

int64_t room_for_answers(const formats::Recipe& recipe, const models::ModelConfig& model,
                         std::span<const Question> questions) {
  const Question& longest = *std::ranges::max_element(
      questions, {}, [](const Question& question) { return question.ids.size(); });
  try {
    return new_tokens(recipe, model, std::ssize(longest.ids));
  } catch (const base::UserError& error) {
    throw base::UserError(error.what(), {longest.file, longest.line, 0});
  }
}

void check_expected(std::span<const scores::Score> metrics, std::span<const Question> questions) {
  constexpr size_t kShownBytes = 200;
  for (const scores::Score& metric : metrics)
    for (const Question& question : questions)
      if (const std::string problem = metric.problem_of(question.expected); !problem.empty())
        throw base::UserError(
            fmt::format("the expected answer '{}' {}, so the metric {} has nothing to compare "
                        "answers with; take the metric out of eval_metrics, or the record out of "
                        "the data",
                        base::ShownLine(question.expected, kShownBytes).view(), problem,
                        metric.name()),
            {question.file, question.line, 0});
}

}  // namespace snug::engine
