// What several ranks save together is what one saves, byte for byte.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/temporary_folder.h"
#include "rank_runs.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/save_model.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::expect_no_errors;
using testing::fill_saved;
using testing::full_shard;
using testing::on_ranks;
using testing::shard_state;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = base::read_text_file(entry.path());
  return files;
}

TinyOptions options_of(formats::Method method) {
  TinyOptions options = testing::tiny(method);
  options.model = testing::rank_model();
  options.threads = 1;
  return options;
}

void save(const fs::path& folder, TinyRun& run) {
  if (run.spec().is_adapted())
    return save_adapter(folder, *testing::options_for(run, folder).adapter, {}, run.executor());
  save_model(folder, {run.spec().model, {}}, run.executor());
}

TEST(RanksSave, TheBytesThatOneRankSaves) {
  for (const formats::Method method : {formats::Method::full, formats::Method::lora}) {
    const TemporaryFolder folder;
    const TinyOptions options = options_of(method);
    TinyRun one(options);
    fill_saved(one, 3);
    save(folder / "one", one);
    const auto expected = contents(folder / "one");
    int number = 0;
    for (const passes::ShardingOptions& ranks : {full_shard(2), full_shard(5), shard_state(3)}) {
      const fs::path path = folder / fmt::format("ranks-{}", number++);
      expect_no_errors(on_ranks(options, ranks, [&](TinyRun& run, int) {
        fill_saved(run, 3);
        save(path, run);
      }));
      const auto found = contents(path);
      EXPECT_EQ(found.size(), expected.size());
      for (const auto& [name, bytes] : expected) {
        ASSERT_TRUE(found.contains(name)) << name;
        EXPECT_TRUE(found.at(name) == bytes) << name;
      }
    }
  }
}

TEST(RanksSave, AFailureOfOneRankLeavesNothing) {
  const TemporaryFolder folder;
  const auto errors =
      on_ranks(options_of(formats::Method::full), full_shard(3), [&](TinyRun& run, int rank) {
        fill_saved(run, 3);
        if (rank == 2) run.set(run.executor().tensor("model.embed_tokens.weight"), 7, INFINITY);
        save(folder / "model", run);
      });
  for (const std::string& error : errors)
    EXPECT_TRUE(contains(error, "model.embed_tokens.weight' is not finite"));
  EXPECT_EQ(folder.count(), 0U);
}

}  // namespace
}  // namespace snug::runtime
