#include "generate/prompts_file/prompts_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "engine/request_shape.h"
#include "generate/recipe_request.h"

namespace snug::generate {
namespace {

// Requests of the sizes that decide a shape, in place of all of them: of each measure the line that
// has most of it. Their prompts have lengths and no ids.
class LargestRequests {
 public:
  explicit LargestRequests(const models::ModelConfig& model) : model_(model) {}

  void add(int64_t line, const engine::Request& request) {
    const auto prompt = std::ssize(request.prompt);
    const int64_t candidates = engine::candidates_of(request);
    const std::array<int64_t, 4> measures{
        prompt, prompt + request.max_new_tokens,
        request.max_new_tokens + (model_.repeats_prompt ? prompt : 0),
        candidates == 0 ? std::numeric_limits<int64_t>::max() : candidates};
    ++count_;
    for (size_t i = 0; i < measures.size(); ++i)
      if (measures[i] > most_[i]) {
        most_[i] = measures[i];
        lines_[i] = line;
        largest_[i] = request;
        std::ranges::fill(largest_[i].prompt, 0);
      }
  }

  plan::InferenceShape shape(int64_t batch) const {
    std::map<int64_t, engine::Request> of_lines;
    for (size_t i = 0; i < largest_.size(); ++i) of_lines.emplace(lines_[i], largest_[i]);
    std::vector<engine::Request> requests;
    requests.reserve(of_lines.size());
    for (const auto& [line, request] : of_lines) requests.push_back(request);
    // As many of the longest prompt as may enter together.
    const int64_t sequences = std::min(batch, count_);
    while (std::ssize(requests) < sequences) requests.push_back(largest_.front());
    return engine::shape_for(requests, batch, model_);
  }

 private:
  const models::ModelConfig& model_;
  int64_t count_ = 0;
  std::array<int64_t, 4> most_{};
  std::array<int64_t, 4> lines_{};
  std::array<engine::Request, 4> largest_{};
};

void hold_bad_lines(const formats::Recipe& recipe, const PromptsSurvey& survey) {
  const int64_t bad = survey.bad.count();
  if (survey.lines == 0) throw base::UserError("the file holds no prompts", {recipe.prompts, 0, 0});
  if (bad == survey.lines)
    base::throw_user_error("{}: no line can be asked:\n{}", recipe.prompts, survey.bad.list());
  if (bad > 0 && recipe.on_bad_record == formats::OnBadRecord::error)
    base::throw_user_error(
        "{}: {} of {} lines cannot be asked; on_bad_record=skip writes an error in place of their "
        "answers:\n{}",
        recipe.prompts, bad, survey.lines, survey.bad.list());
}

}  // namespace

PromptsSurvey survey_prompts(const formats::Recipe& recipe, const models::ModelConfig& model,
                             PromptLines lines) {
  PromptsSurvey survey;
  LargestRequests largest(model);
  base::ChecksumStream checksum;
  for (PromptLine line; lines.next(line); ++survey.lines) {
    line.written += '\n';
    checksum.add(line.written.data(), std::ssize(line.written));
    if (line.error)
      survey.bad.add(*line.error);
    else
      largest.add(line.index, line.asked.request);
  }
  hold_bad_lines(recipe, survey);
  survey.checksum = base::checksum_text(checksum.value());
  survey.shape = with_guesses(recipe, largest.shape(recipe.batch));
  return survey;
}

}  // namespace snug::generate
