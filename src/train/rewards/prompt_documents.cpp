#include "train/rewards/prompt_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/console.h"
#include "plan/choice/change.h"
namespace snug::train {
namespace {

int64_t longest_of(std::span<const RewardedPrompt> prompts) {
  int64_t longest = 0;
  for (const RewardedPrompt& prompt : prompts)
    longest = std::max<int64_t>(longest, std::ssize(prompt.ids));
  return longest;
}

}  // namespace

void PromptDocuments::add(const std::string& name, std::vector<RewardedPrompt> prompts) {
  text::DatasetAudit audit;
  audit.form = "prompts";
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;
  prompts_.reserve(prompts_.size() + prompts.size());
  for (RewardedPrompt& prompt : prompts) {
    ids = prompt.ids;
    ids.push_back(0);
    trained.assign(ids.size(), 0);
    trained.back() = 1;
    dataset_.documents.add(ids, trained);
    audit.count_record(std::ssize(prompt.ids));
    audit.tokens += std::ssize(prompt.ids);
    ++audit.documents;
    prompts_.push_back(std::move(prompt));
  }
  dataset_.sources.push_back({name, dataset_.documents.size(), audit});
  dataset_.audit.add(audit);
}

text::Dataset PromptDocuments::take() {
  dataset_.documents.finish();
  return std::move(dataset_);
}

std::string describe_prompts(const text::LoadedSource& source) {
  return fmt::format("{}: {} prompts, {} tokens; the longest has {}", source.name,
                     source.audit.documents, source.audit.tokens, source.audit.longest);
}

int64_t bytes_of_prompts(std::span<const RewardedPrompt> prompts) {
  auto bytes = static_cast<int64_t>(prompts.size_bytes());
  for (const RewardedPrompt& prompt : prompts)
    bytes += static_cast<int64_t>(prompt.ids.capacity() * sizeof(int32_t) +
                                  prompt.shown.capacity() + prompt.record.fields.capacity() +
                                  prompt.record.file.capacity() + prompt.record.answer.capacity());
  return bytes;
}

formats::Recipe with_length_of_prompts(const formats::Recipe& recipe,
                                       std::span<const RewardedPrompt> prompts) {
  const int64_t longest = longest_of(prompts);
  const int64_t length = longest + recipe.max_completion_length;
  base::say("max_length=auto: {} tokens, {} of the longest prompt and {} of an answer", length,
            longest, recipe.max_completion_length);
  return plan::with_overrides(recipe, {{"max_length", std::to_string(length)}});
}

}  // namespace snug::train
