// The prompts that a model is asked while it learns from rewards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/recipe.h"
#include "text/row/held_out.h"
#include "text/row/record_source.h"
#include "text/tokenizer/tokenizer.h"
#include "train/rewards/rewarded_answer.h"

namespace snug::train {

struct RewardedPrompt {
  std::vector<int32_t> ids;  // as training puts them before an answer
  std::string shown;         // the user's last words
  RewardedRecord record;
  bool is_conversation = false;
};

// Which prompts are asked.
struct AskedPrompts {
  std::string_view key = "data";  // of the recipe, which names the sources
  int64_t most_tokens = 0;  // longer prompts are left out, and it is said how many; 0: none is
  // Records that are left out, or, with `takes_held_out`, the only ones that are asked; null: none.
  const text::HeldOut* held_out = nullptr;
  bool takes_held_out = false;
};

// The prompts of the records of the sources: every record once, in the order of the files, up to
// the limit of its source; weights and repeats of sources are not looked at. A record needs no
// answer (text/record/asked_record.h). Throws UserError for more bad records than the recipe
// allows, and where nothing is left to ask.
std::vector<RewardedPrompt> rewarded_prompts(const formats::Recipe& recipe,
                                             const std::vector<text::RecordSource>& sources,
                                             const AskedPrompts& asked,
                                             const text::Tokenizer& tokenizer);

}  // namespace snug::train
