#include "formats/recipe/recipe_table.h"

namespace snug::formats {

// DeepSpeed's names; the defaults are those of torch.amp.GradScaler.
void add_loss_scale_keys(KeyTable& table) {
  table.add<&Recipe::fp16>("fp16", "false", "the same as compute_dtype: fp16");
  table
      .add<&Recipe::loss_scale>(
          "loss_scale", "0",
          "with fp16, the factor of losses before gradients are computed; 0: it follows overflows, "
          "from 2^initial_scale_power on")
      .range({.least = 0, .most = kMaxFloat})
      .translations({{"default", "0"}})
      .side_words({{.name = "loss_scale",
                    .word = "last_round",
                    .key = "train_on_turns",
                    .value = "last",
                    .stands_alone = true},
                   {.name = "loss_scale",
                    .word = "all",
                    .key = "train_on_prompt",
                    .value = "true",
                    .stands_alone = true}})
      .not_built({"ignore_empty_think", "last_round_with_ignore_empty_think", "react", "hermes",
                  "qwen", "agentflan", "alpha_umi"},
                 "it weighs parts of answers: each is learned whole here, and \"weight\": 0 in the "
                 "data's messages says which are not, train_on_turns: last that the last turn is "
                 "alone; here loss_scale is a number, for fp16")
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::initial_scale_power>("initial_scale_power", "16",
                                         "the first loss scale is 2 to this power")
      .range({.least = 0, .most = 64})
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::loss_scale_window>(
          "loss_scale_window", "2000",
          "the loss scale is doubled after this many steps in a row with finite gradients")
      .range({.least = 1, .most = 1 << 24})
      .on_resume(OnResume::free);
  // A run ends after ten skipped steps in a row.
  table
      .add<&Recipe::hysteresis>(
          "hysteresis", "1",
          "which step with gradients that are not finite is the first to halve "
          "the loss scale, counted since it last grew; each later one does "
          "too")
      .range({.least = 1, .most = 10})
      .on_resume(OnResume::free);
  table
      .add<&Recipe::min_loss_scale>("min_loss_scale", "0",
                                    "the loss scale is not halved below this")
      .range({.least = 0, .most = kMaxFloat})
      .on_resume(OnResume::free);
}

}  // namespace snug::formats
