#include "train/rewards/prompt_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/console.h"
#include "engine/questions/question.h"

namespace snug::train {
namespace {

class PromptReader {
 public:
  PromptReader(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
               const AskedPrompts& asked)
      : recipe_(recipe), tokenizer_(tokenizer), asked_(asked) {}

  void read(const text::RecordSource& source) {
    const text::DatasetOptions& options = source.options;
    const text::RecordRules rules{
        .form = options.form,
        .has_encoder = options.encoder_length > 0,
        .ignored = options.ignored_fields,
        .mapping = options.mapping.is_empty() ? nullptr : &options.mapping};
    int64_t left = source.limit;
    for (const std::string& file : source.files) {
      if (source.limit > 0 && left <= 0) return;
      engine::QuestionFile asked{.path = file,
                                 .rules = rules,
                                 .chat_template = options.chat_template,
                                 .most_records = left,
                                 .is_for_rewards = true};
      if (asked_.held_out != nullptr)
        asked.takes = [&](const text::RawRecord& raw) {
          return asked_.held_out->holds(raw) == asked_.takes_held_out;
        };
      engine::EvaluatedRecords records;
      std::vector<engine::Question> questions = engine::questions_in(asked, tokenizer_, records);
      const bool is_held_out = records.count > 0 && records.bad.count() == 0;
      records.check(recipe_, file, !questions.empty() || is_held_out, "nothing is left to ask");
      if (records.bad.count() > 0) base::say("{}", records.bad.told(file, records.count));
      left -= records.count;
      take(std::move(questions));
    }
  }

  std::vector<RewardedPrompt> finish() {
    if (too_long_ > 0 && !prompts_.empty())
      base::say("{} of {} prompts {} more than {} tokens and {} left out, first that at {}:{}",
                too_long_, too_long_ + std::ssize(prompts_), too_long_ == 1 ? "has" : "have",
                asked_.most_tokens, too_long_ == 1 ? "is" : "are", first_too_long_.first,
                first_too_long_.second);
    if (prompts_.empty() && too_long_ > 0)
      recipe_.fail(asked_.key,
                   fmt::format("has {} prompts, all of more than the {} tokens that there "
                               "is room for before an answer; give a greater max_length, "
                               "or a smaller max_completion_length",
                               too_long_, asked_.most_tokens));
    if (prompts_.empty() && asked_.takes_held_out)
      recipe_.fail(asked_.key,
                   "takes none of the records of the data that ask something; give a larger share, "
                   "or a number of records");
    if (prompts_.empty()) recipe_.fail(asked_.key, "has no record that asks something");
    return std::move(prompts_);
  }

 private:
  void take(std::vector<engine::Question> questions) {
    prompts_.reserve(prompts_.size() + questions.size());
    for (engine::Question& question : questions) {
      if (asked_.most_tokens > 0 && std::ssize(question.ids) > asked_.most_tokens) {
        if (too_long_++ == 0) first_too_long_ = {question.file, question.line};
        continue;
      }
      prompts_.push_back({.ids = std::move(question.ids),
                          .shown = std::move(question.shown),
                          .record = {.fields = std::move(question.record),
                                     .file = std::move(question.file),
                                     .line = question.line,
                                     .answer = std::move(question.expected)},
                          .is_conversation = question.is_conversation});
    }
  }

  const formats::Recipe& recipe_;
  const text::Tokenizer& tokenizer_;
  const AskedPrompts& asked_;
  std::vector<RewardedPrompt> prompts_;
  int64_t too_long_ = 0;
  std::pair<std::string, int> first_too_long_;  // file and line
};

}  // namespace

std::vector<RewardedPrompt> rewarded_prompts(const formats::Recipe& recipe,
                                             const std::vector<text::RecordSource>& sources,
                                             const AskedPrompts& asked,
                                             const text::Tokenizer& tokenizer) {
  PromptReader reader(recipe, tokenizer, asked);
  for (const text::RecordSource& source : sources) reader.read(source);
  return reader.finish();
}

}  // namespace snug::train
