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
      .not_built({"all", "last_round", "ignore_empty_think", "react", "hermes", "qwen", "agentflan",
                  "alpha_umi"},
                 "it says which parts of conversations are learned: answers are, or with "
                 "train_on_prompt: true all, and \"weight\": 0 in the data's messages says which "
                 "answers are not; here loss_scale is a number, for fp16")
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
