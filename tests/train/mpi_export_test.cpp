// What a run exports depends on its checkpoint alone: any number of ranks, however they divide the
// weights, writes the same bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "mpi_job.h"

namespace snug::train {
namespace {

constexpr int kStepRows = 6;  // on any number of ranks

// The files of a folder and what they hold.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder).string()] = cli::contents_of(entry.path());
  return files;
}

struct Case {
  std::string method;
  std::string result;  // the folder that is exported
};

std::ostream& operator<<(std::ostream& stream, const Case& run) { return stream << run.method; }

class MpiExport : public ::testing::TestWithParam<Case> {
 protected:
  MpiExport() { prepare_mpi(); }

  std::string words_of(int ranks, const std::string& strategy) const {
    return fmt::format("{} {} max_steps=4 save_steps=2 shard_threshold=100 {} {}", kMpiCommon,
                       GetParam().method,
                       fmt::format("per_device_train_batch_size={}", kStepRows / ranks),
                       ranks > 1 ? fmt::format("devices={} strategy={}", ranks, strategy) : "");
  }
  // The weights and configs that these ranks export of a copy of the run's checkpoints.
  std::map<std::string, std::string> exported(int ranks, const std::string& strategy) const {
    const std::string name = fmt::format("on_{}_{}", ranks, strategy);
    fs::copy(job_.path("run"), job_.path(name), fs::copy_options::recursive);
    fs::remove_all(job_.path(name) / GetParam().result);
    const cli::BinaryRun run =
        job_.run(name, words_of(ranks, strategy) + " resume_from_checkpoint=auto");
    EXPECT_EQ(run.exit_code, 0) << run.output();
    EXPECT_NE(run.output().find("resumed from"), std::string::npos) << run.output();
    return without_card(files_of(job_.path(name) / GetParam().result));
  }
  // A model card tells of the run that wrote it, and the list of files has its size.
  static std::map<std::string, std::string> without_card(std::map<std::string, std::string> files) {
    files.erase("README.md");
    if (const auto list = files.find(".snug_files.json"); list != files.end())
      list->second = std::regex_replace(list->second, std::regex("\"README.md\": [0-9]+"), "");
    return files;
  }

  TinyJob job_;
};

TEST_P(MpiExport, IsTheSameByAnyNumberOfRanks) {
  const cli::BinaryRun run = job_.run("run", words_of(2, "full_shard"));
  ASSERT_EQ(run.exit_code, 0) << run.output();
  const auto expected = without_card(files_of(job_.path("run") / GetParam().result));
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(exported(1, "none"), expected);
  EXPECT_EQ(exported(2, "ddp"), expected);
  EXPECT_EQ(exported(3, "full_shard"), expected);
}

INSTANTIATE_TEST_SUITE_P(Methods, MpiExport,
                         ::testing::Values(Case{"method=lora lora_r=4", "adapter"},
                                           Case{"method=qlora use_dora=true lora_r=4", "adapter"},
                                           Case{"method=full", "model"}));

}  // namespace
}  // namespace snug::train
