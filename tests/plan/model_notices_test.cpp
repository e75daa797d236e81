// What a plan tells of a model that Snug computes otherwise than others do.
#include "plan/spec/model_notices.h"

#include <gtest/gtest.h>

#include "models/config/config.h"

namespace snug::plan {
namespace {

using formats::Method;

std::vector<std::string> notices_of(std::string_view shape, Method method = Method::lora,
                                    std::vector<std::string> targets = {"all-linear"}) {
  formats::Recipe recipe;
  recipe.model = shape;
  recipe.method = method;
  recipe.target_modules = std::move(targets);
  return model_notices(recipe, *models::preset(shape));
}

bool tells_of(const std::vector<std::string>& notices, std::string_view words) {
  return notices.size() == 1 && notices.front().find(words) != std::string::npos;
}

// Falcon-RW's biases are scaled and rounded in transformers; BLOOM's are not, nor has Falcon-7B
// any.
TEST(ModelNotices, TellOfFalconsBiasesByDistance) {
  EXPECT_TRUE(tells_of(notices_of("falcon-rw-1b"), "falcon-rw-1b: transformers rounds the biases"));
  EXPECT_TRUE(tells_of(notices_of("falcon-rw-1b", Method::full), "rounds the biases"));
  for (const char* without : {"falcon-7b", "falcon-40b", "bloom-560m", "llama-3.2-1b"})
    EXPECT_TRUE(notices_of(without).empty()) << without;
}

TEST(ModelNotices, TellOfDropoutThatIsNotDone) {
  models::ModelConfig config = *models::preset("gpt2");
  formats::Recipe recipe;
  recipe.model = "folder";
  config.dropout = 0.1;
  EXPECT_TRUE(tells_of(model_notices(recipe, config),
                       "folder: config.json asks for dropout of 0.1 in training"));
  config.dropout = 0;
  EXPECT_TRUE(model_notices(recipe, config).empty());
}

// Only where PEFT would give experts adapters that Snug does not.
TEST(ModelNotices, TellOfExpertsThatAllLinearLeavesOut) {
  constexpr std::string_view kWords = "experts are adapted where target_parameters names them";
  for (const Method method : {Method::lora, Method::qlora})
    EXPECT_TRUE(tells_of(notices_of("mixtral-8x7b", method), kWords));
  EXPECT_TRUE(tells_of(notices_of("qwen3-30b-a3b"), kWords));
  EXPECT_TRUE(tells_of(notices_of("gemma-4-26b-a4b"), "routers have no adapters"));
  EXPECT_TRUE(notices_of("gpt-oss-20b").empty()) << "its files hold experts together";
  EXPECT_TRUE(notices_of("qwen1.5-moe-a2.7b").empty()) << "PEFT does as Snug does";
  EXPECT_TRUE(notices_of("mixtral-8x7b", Method::lora, {"q_proj"}).empty());
  EXPECT_TRUE(notices_of("mixtral-8x7b", Method::full).empty());
}

// What PEFT would not apply of an adapter that Snug writes.
TEST(ModelNotices, TellOfMlpsThatPeftTakesForExperts) {
  constexpr std::string_view kWords = "so leaves out this adapter's plain and shared mlps";
  EXPECT_TRUE(tells_of(notices_of("glm-4.5-air", Method::qlora, {"q_proj", "up_proj"}), kWords));
  EXPECT_EQ(notices_of("glm-4.5-air").size(), 2U);
  EXPECT_TRUE(notices_of("glm-4.5-air", Method::lora, {"q_proj"}).empty());
  EXPECT_TRUE(notices_of("qwen3-30b-a3b", Method::lora, {"up_proj"}).empty()) << "it has none";
}

}  // namespace
}  // namespace snug::plan
