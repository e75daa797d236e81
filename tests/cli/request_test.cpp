// How the words after a verb become a recipe.
#include "cli/request.h"

#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"

namespace snug::cli {
namespace {

using testing::contains;
using testing::user_error_of;

TEST(Request, OfTwoWordsForOneKeyTheLastCounts) {
  const Request request = make_request(
      {"micro_batch_size=4", "seed=1", "per_device_train_batch_size=2", "seed=3"}, true);
  EXPECT_EQ(request.overrides,
            (std::vector<std::string>{"per_device_train_batch_size=2", "seed=3"}));
  EXPECT_TRUE(request.json);
  EXPECT_EQ(request.recipe().per_device_train_batch_size, 2);
}

TEST(Request, TakesOneRecipeAnywhereAmongTheWords) {
  const testing::TemporaryFolder folder;
  const std::string a = folder.write("a=b.yaml", "seed: 7\nlora_r: 4\n").string();
  const Request request = make_request({"lora_r=8", a}, false);
  EXPECT_EQ(request.recipe_file, a);
  EXPECT_EQ(request.recipe().seed, 7);
  EXPECT_EQ(request.recipe().lora_r, 8);
  EXPECT_TRUE(contains(user_error_of([&] { make_request({a, a}, false); }), "two recipe files"));
  EXPECT_TRUE(contains(user_error_of([&] { make_request({"gone.yaml"}, false); }), "gone.yaml"));
}

// A prompt may be longer than any file's name.
TEST(Request, TakesWordsLongerThanAnyFileName) {
  const std::string prompt = "prompt=" + std::string(5000, 'x');
  EXPECT_EQ(make_request({prompt}, false).overrides, std::vector<std::string>{prompt});
  const std::string word(5000, 'y');
  EXPECT_TRUE(contains(user_error_of([&] { make_request({word}, false); }), "neither a recipe"));
}

std::string said_of(const Request& request) {
  const testing::CapturedStream errors(stderr);
  (void)user_error_of([&] { request.recipe(); });
  return errors.text();
}

// Notes come before mistakes, and mistakes of paths with those of keys.
TEST(Request, TellsAllOfARecipe) {
  const testing::TemporaryFolder folder;
  const std::string path =
      folder.write("r.yaml", "data: gone.json\nwandb_project: a\ntop_p: 0.5\nlora_r: 0\n").string();
  Request request = make_request({path}, false);
  request.keys = {"data", "learning_rate", "lora_r"};
  EXPECT_TRUE(contains(said_of(request), "'wandb_project' (line 2): not used"));
  EXPECT_TRUE(contains(said_of(request), "'top_p' (line 3): not used in training"));
  const std::string error = user_error_of([&] { request.recipe(); });
  EXPECT_TRUE(contains(error, ":4:1: 'lora_r' is '0'")) << error;
  EXPECT_TRUE(contains(error, ":1:1: 'data' is gone.json")) << error;
  request.keys = {"top_p", "prompt"};
  EXPECT_EQ(said_of(request).find("top_p"), std::string::npos);
}

// A key under another of its names is the same key.
TEST(Request, DoesNotCallAKeyUnusedUnderAnotherName) {
  const testing::TemporaryFolder folder;
  const std::string path =
      folder.write("r.yaml", "lora_rank: 8\nlr: 1e-3\nepochs: 2\ntrain_on_inputs: true\n").string();
  Request request = make_request({path}, false);
  request.keys = {"learning_rate", "lora_r", "num_train_epochs", "train_on_prompt"};
  EXPECT_FALSE(contains(said_of(request), "not used in training")) << said_of(request);
}

// ms-swift puts it before every record; a verb that generates takes it.
TEST(Request, RefusesASystemMessageInTraining) {
  const testing::TemporaryFolder folder;
  Request request =
      make_request({folder.write("r.yaml", "seed: 1\nsystem: be kind\n").string()}, false);
  request.keys = {"learning_rate", "seed"};
  const std::string error = user_error_of([&] { request.recipe(); });
  EXPECT_TRUE(contains(error, ":2:1: 'system' is not put before records in training")) << error;
  EXPECT_EQ(said_of(request), "") << "it is refused, and so not called unused";
  request.keys = {"system", "seed"};
  EXPECT_EQ(request.recipe().system, "be kind");
}

TEST(Request, NamesTheTemplatesWhereOneIsNotFound) {
  const testing::TemporaryFolder folder;
  Request request =
      make_request({folder.write("r.yaml", "chat_template: llama-9\n").string()}, false);
  request.keys = {"chat_template", "learning_rate"};
  EXPECT_TRUE(contains(user_error_of([&] { request.recipe(); }), "built in are chatml, qwen-2.5,"));
}

}  // namespace
}  // namespace snug::cli
