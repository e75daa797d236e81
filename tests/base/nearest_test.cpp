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

}  // namespace
}  // namespace snug::base
