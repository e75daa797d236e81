#include "generate/questions.h"

#include <algorithm>
#include <iterator>

#include "generate/evaluated_data.h"

namespace snug::generate {
namespace {

std::vector<engine::Question> questions_of(const formats::Recipe& recipe,
                                           const formats::DataEntry& entry,
                                           const text::Tokenizer& tokenizer, bool has_encoder) {
  const EvaluatedData data(recipe, entry, has_encoder);
  std::vector<engine::Question> questions;
  for (const std::string& file : data.files().files) {
    engine::EvaluatedRecords records;
    std::vector<engine::Question> of_file = engine::questions_in(
        {.path = file, .rules = data.rules(), .chat_template = recipe.chat_template}, tokenizer,
        records);
    records.check(recipe, file, !of_file.empty(), "nothing is left to ask");
    records.tell(file, data.rules());
    std::ranges::move(of_file, std::back_inserter(questions));
  }
  const int64_t limit = data.files().limit;
  if (limit > 0 && std::ssize(questions) > limit) questions.resize(static_cast<size_t>(limit));
  return questions;
}

}  // namespace

std::vector<engine::Question> read_questions(const formats::Recipe& recipe,
                                             const text::Tokenizer& tokenizer, bool has_encoder) {
  refuse_weights(recipe, "each question is asked");
  std::vector<engine::Question> questions;
  for (const formats::DataEntry& entry : recipe.data)
    std::ranges::move(questions_of(recipe, entry, tokenizer, has_encoder),
                      std::back_inserter(questions));
  return questions;
}

}  // namespace snug::generate
