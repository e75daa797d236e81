// Prompts as the documents of a run: in their order an epoch takes them, and by them a run that
// goes on knows its data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/recipe/recipe.h"
#include "text/row/dataset.h"
#include "train/rewards/prompt_reader.h"

namespace snug::train {

// Prompts, and a document for each: its ids, and one more token, of which nothing is learned.
class PromptDocuments {
 public:
  // Those of a source, which follow those of the sources before it.
  void add(const std::string& name, std::vector<RewardedPrompt> prompts);

  std::vector<RewardedPrompt> take_prompts() { return std::move(prompts_); }
  text::Dataset take();

 private:
  std::vector<RewardedPrompt> prompts_;
  text::Dataset dataset_;
};

// What the log says of a source of prompts.
std::string describe_prompts(const text::LoadedSource& source);

// What is held of them in memory.
int64_t bytes_of_prompts(std::span<const RewardedPrompt> prompts);

// The recipe with max_length of the longest prompt and its longest answer, which is said.
formats::Recipe with_length_of_prompts(const formats::Recipe& recipe,
                                       std::span<const RewardedPrompt> prompts);

}  // namespace snug::train
