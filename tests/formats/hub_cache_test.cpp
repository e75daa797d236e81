#include "formats/folder/hub_cache.h"

#include "../base/temporary_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace snug::formats {
namespace {

using testing::TemporaryFolder;

TEST(HubCache, ReadsNamesOfTheHub) {
  const auto name = parse_hub_name("meta-llama/Llama-3.1-8B");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->organisation, "meta-llama");
  EXPECT_EQ(name->name, "Llama-3.1-8B");
  EXPECT_EQ(name->revision, "main");
  EXPECT_EQ(name->download_command(), "hf download meta-llama/Llama-3.1-8B");
  const auto tagged = parse_hub_name("a/b@v1.0");
  ASSERT_TRUE(tagged);
  EXPECT_EQ(tagged->download_command(), "hf download a/b --revision v1.0");
  for (const char* word : {"llama", "a/b/c", "/a", "a/", "../b", "a/..", "a/b@", "a/b@../c",
                           "a b/c", "a/b@x/y", "./a", ""})
    EXPECT_FALSE(parse_hub_name(word)) << word;
}

class HubCacheFolder : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("HF_HUB_CACHE", folder_.path().c_str(), 1); }
  void TearDown() override {
    for (const char* name : {"HF_HUB_CACHE", "HF_HOME"}) ::unsetenv(name);
  }
  static std::optional<std::filesystem::path> find(const char* word) {
    return find_in_hub_cache(*parse_hub_name(word));
  }

  TemporaryFolder folder_;
};

TEST_F(HubCacheFolder, FollowsARefToItsCommit) {
  folder_.write("models--org--m/refs/main", "0123abc\n");
  folder_.write("models--org--m/refs/v1", "4567def");
  folder_.write("models--org--m/snapshots/0123abc/config.json", "{}");
  const auto main = folder_ / "models--org--m/snapshots/0123abc";
  EXPECT_EQ(find("org/m"), main);
  EXPECT_EQ(find("org/m@0123abc"), main);
  EXPECT_EQ(find("org/m@v1"), std::nullopt) << "its commit is not there";
  EXPECT_EQ(find("org/other"), std::nullopt);
  folder_.write("models--org--m/refs/evil", "../../../etc");
  EXPECT_EQ(find("org/m@evil"), std::nullopt);
}

TEST_F(HubCacheFolder, LiesWhereTheEnvironmentSays) {
  EXPECT_EQ(hub_cache_folder(), folder_.path());
  ::unsetenv("HF_HUB_CACHE");
  ::setenv("HF_HOME", "/hf", 1);
  EXPECT_EQ(hub_cache_folder(), "/hf/hub");
}

}  // namespace
}  // namespace snug::formats
