#include "base/nearest.h"

#include <gtest/gtest.h>

namespace snug::base {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("lerning_rate", "learning_rate"), 1);
  EXPECT_EQ(edit_distance("laerning", "learning"), 1) << "an adjacent swap is one edit";
  EXPECT_EQ(edit_distance("LoRA", "lora"), 0);
}

TEST(Nearest, PicksTheNearest) {
  EXPECT_EQ(nearest_name("max_step", {"max_length", "max_steps", "seed"}), "max_steps");
  EXPECT_EQ(nearest_name("bat", {"cat", "rat"}), "cat") << "the first on a tie";
  EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

TEST(Nearest, NamesNothingThatIsFar) {
  EXPECT_EQ(nearest_name("meta-llama", {"smollm2-135m", "qwen3-8b"}), std::nullopt);
  EXPECT_EQ(nearest_name("x", {"a", "b"}), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'x'), {"max_steps"}), std::nullopt);
}

TEST(Nearest, ASlipLeavesTheMeaning) {
  const std::vector<std::string_view> keys{"learning_rate", "max_steps", "batch_size", "use_dora",
                                           "load_in_4bit",  "top_k",     "adamw_bf16", "lora_r"};
  EXPECT_EQ(nearest_slip("lerning_rate", keys), "learning_rate");
  EXPECT_EQ(nearest_slip("max_step", keys), "max_steps");
  EXPECT_EQ(nearest_slip("batchsize", keys), "batch_size");
  EXPECT_EQ(nearest_slip("adamw_bf61", keys), "adamw_bf16");
  EXPECT_EQ(nearest_slip("laerning_rate", keys), "learning_rate");
  for (const char* other : {"use_lora", "load_in_8bit", "top_p", "lora_b", "max_stages", "bach"})
    EXPECT_EQ(nearest_slip(other, keys), std::nullopt) << other;
}

}  // namespace
}  // namespace snug::base
