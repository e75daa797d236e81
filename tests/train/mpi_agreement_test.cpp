// Ranks that find other things on their machines: what they must have alike is compared, and what
// may differ the first decides for all.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "mpi_apps.h"
#include "mpi_job.h"
#include "program/work/target.h"
#include "two_calibrations.h"

namespace snug::train {
namespace {

class MpiAgreement : public ::testing::Test {
 protected:
  MpiAgreement() { prepare_mpi(); }
  TinyJob job_;
};

TEST_F(MpiAgreement, RanksOfDifferentRecipesAreRefused) {
  const auto app = [&](const std::string& word) {
    return App{job_.path("."), with_binary(job_.words("run", kMpiCommon + word))};
  };
  // Which part the ranks into groups in different ways.
  expect_all_refuse(
      job_, launch({app("strategy=full_shard"), app("strategy=hybrid_full_shard shard_devices=1")}),
      "The ranks do not agree on strategy: it is 'full_shard' on rank 0 and 'hybrid_full_shard'");
}

// The same path may hold another file on another machine.
TEST_F(MpiAgreement, RanksOfDifferentFilesAreRefused) {
  const auto apps = [&](const std::string& word) {
    std::vector<App> all;
    for (const char* folder : {"a", "b"}) {
      const std::string more = std::string(kMpiCommon) + "method=lora " + word;
      all.push_back({job_.path(folder), with_binary(job_.words("run", more))});
    }
    return all;
  };
  job_.folder().write("a/data.jsonl", cli::kTinyData);
  job_.folder().write("b/data.jsonl", std::string(cli::kTinyData) + cli::kTinyData);
  expect_all_refuse(job_, launch(apps("data=data.jsonl")), "do not agree on the data: it is '");
  expect_all_refuse(job_, launch(apps("eval_data=data.jsonl")),
                    "do not agree on the evaluation data: it is '");
  for (const char* folder : {"a", "b"}) {
    const std::string words =
        fmt::format("{} method=full seed={} max_steps=1", kMpiCommon, folder[0] == 'a' ? 1 : 2);
    ASSERT_EQ(job_.run(fmt::format("{}/run", folder), words).exit_code, 0);
  }
  expect_all_refuse(job_, launch(apps("model=run/model init=files")),
                    "do not agree on the files of the model: it is '");
}

TEST_F(MpiAgreement, TheFirstChoosesTheRowsForAll) {
  const std::string common = "recompute=none strategy=ddp ";
  std::vector<std::string> variants;
  for (const int rows : {1, 2, 4})
    variants.push_back(
        fmt::format("{} per_device_train_batch_size={} gradient_accumulation_steps={}", common,
                    rows, 4 / rows));
  write_two_calibrations(job_, variants);
  const std::string words = common +
                            "calibration=rates.json per_device_train_batch_size=auto "
                            "gradient_accumulation_steps=4 max_steps=2 timeout_seconds=60 ";
  const auto said = [&](const char* rows) {
    return fmt::format("per_device_train_batch_size=auto: {}", rows);
  };
  const std::string many = said("4 rows in a micro-batch, gradient_accumulation_steps=1");
  const std::string one = said("1 row in a micro-batch, gradient_accumulation_steps=4");
  for (const auto& [folders, expected] : {std::pair{"ab", many}, std::pair{"ba", one}}) {
    const std::string output = fmt::format("run-{}", folders);
    std::vector<App> apps;
    for (const char* folder = folders; *folder != 0; ++folder)
      apps.push_back({job_.path(std::string(1, *folder)), with_binary(job_.words(output, words))});
    const cli::BinaryRun run = launch(apps);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(count_of(run.err, expected), 1) << run.err;
    EXPECT_EQ(values_of(job_, output, "loss").size(), 2U);
  }
}

// By the times of `a` few large micro-batches are fastest, by those of `b` many small ones.
TEST_F(MpiAgreement, TheFirstChoosesTheLengthForAll) {
  const std::string record = "{\"input_ids\": [5, 6, 7, 8, 9, 10, 11, 12]}\n";
  std::string ids = "5";
  for (int id = 6; id < 65; ++id) ids += fmt::format(", {}", id);
  const std::string document = fmt::format("{{\"input_ids\": [{}]}}\n", ids);
  job_.folder().write("ids.jsonl", document + document + document + document);
  job_.folder().write("a/other.jsonl", record);
  job_.folder().write("b/other.jsonl", "{\"input_ids\": [5, 6, 7, 8, 9, 10, 11, 12, 13]}\n");
  const std::string common = "recompute=none strategy=ddp ";
  std::vector<std::string> variants;
  for (const int times : {1, 2, 4})
    variants.push_back(fmt::format("{} max_length={} gradient_accumulation_steps={} data={}",
                                   common, 60 * times, 4 / times, job_.path("ids.jsonl").string()));
  write_two_calibrations(job_, variants);
  const std::string words = common +
                            "calibration=rates.json max_length=auto "
                            "gradient_accumulation_steps=4 max_steps=2 timeout_seconds=60 data=";
  const auto run = [&](const std::string& output, const std::string& folders,
                       const std::string& data) {
    std::vector<App> apps;
    for (const char folder : folders)
      apps.push_back(
          {job_.path(std::string(1, folder)), with_binary(job_.words(output, words + data))});
    return launch(apps);
  };
  const std::string long_rows = "max_length=auto: 240 tokens, 4 times the longest document";
  const std::string short_rows = "max_length=auto: 60 tokens, the longest document";
  for (const auto& [folders, expected] :
       {std::pair{"ab", long_rows}, std::pair{"ba", short_rows}}) {
    const cli::BinaryRun done = run(folders, folders, job_.path("ids.jsonl").string());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(count_of(done.err, expected), 1) << done.err;
    EXPECT_EQ(values_of(job_, folders, "loss").size(), 2U);
  }
  expect_all_refuse(job_, run("run", "ab", "other.jsonl"), "do not agree on the data: it is '");
}

nlohmann::json plan_of(const TinyJob& job, const std::string& words) {
  std::vector<std::string> all = job.words("planned", words + "devices=2 --json");
  all.front() = "plan";
  return nlohmann::json::parse(cli::run_snug(all).out);
}

// A budget for which the two calibrations make a rank choose other modes; 0: there is none.
int64_t budget_of_two_choices(const TinyJob& job, const std::string& words) {
  const auto bytes = plan_of(job, words).at("device").at("peak_bytes").get<int64_t>();
  constexpr int kSteps = 40;
  for (int step = kSteps - 1; step > kSteps / 2; --step) {
    const int64_t budget = bytes / kSteps * step;
    std::set<std::string> chosen;
    for (const char* folder : {"a", "b"}) {
      const std::string more = fmt::format("device_memory={}B calibration={} ", budget,
                                           (job.path(folder) / "rates.json").string());
      chosen.insert(plan_of(job, words + more).at("recompute_layers").dump());
    }
    if (chosen.size() == 2) return budget;
  }
  return 0;
}

TEST_F(MpiAgreement, TheFirstChoosesWhatLayersComputeAgainForAll) {
  std::string words = "strategy=ddp per_device_train_batch_size=4 ";
  write_two_calibrations(job_, {words + "recompute=none", words + "recompute=layer"});
  const int64_t budget = budget_of_two_choices(job_, words);
  ASSERT_GT(budget, 0);
  words += fmt::format("max_steps=2 timeout_seconds=60 device_memory={}B calibration=rates.json ",
                       budget);
  std::set<std::string> chosen;
  for (const char* folders : {"ab", "ba"}) {
    const std::string output = fmt::format("run-{}", folders);
    std::vector<App> apps;
    for (const char* folder = folders; *folder != 0; ++folder)
      apps.push_back({job_.path(std::string(1, *folder)), with_binary(job_.words(output, words))});
    const cli::BinaryRun run = launch(apps);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(values_of(job_, output, "loss").size(), 2U);
    const auto plan = nlohmann::json::parse(cli::contents_of(job_.path(output) / "plan.json"));
    chosen.insert(plan.at("recompute_layers").dump());
  }
  EXPECT_EQ(chosen.size(), 2U) << *chosen.begin();
}

// A build of the same version that is another program: the linker's identity of it is changed.
TEST_F(MpiAgreement, RanksOfDifferentBuildsAreRefused) {
  std::string binary = cli::contents_of(SNUG_BINARY);
  const std::string note("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
  const size_t found = binary.find(note);
  ASSERT_NE(found, std::string::npos) << "the linker gives no build id";
  binary[found + note.size()] ^= 1;
  const fs::path other = job_.path("other");
  job_.folder().write("other/snug", binary);
  fs::permissions(other / "snug", fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(fs::path(SNUG_BINARY).parent_path()))
    if (entry.path().extension() == ".so")
      fs::create_symlink(entry.path(), other / entry.path().filename());
  const auto app = [&](const std::string& program) {
    return App{job_.path("."), cli::joined({program}, job_.words("run", kMpiCommon))};
  };
  expect_all_refuse(job_, launch({app(SNUG_BINARY), app((other / "snug").string())}),
                    "do not agree on the build of snug: it is '");
}

// A folder of each machine's own disk, as a path of each rank's own folder is.
TEST_F(MpiAgreement, RanksOfDifferentFoldersAreRefused) {
  std::vector<App> apps;
  for (const char* folder : {"a", "b"}) {
    fs::create_directory(job_.path(folder));
    apps.push_back({job_.path(folder), with_binary(job_.words("run", kMpiCommon))});
    std::replace_if(
        apps.back().words.begin(), apps.back().words.end(),
        [](const std::string& word) { return word.starts_with("output_dir="); }, "output_dir=run");
  }
  const cli::BinaryRun run = launch(apps);
  expect_all_refuse(job_, run,
                    "which is not the folder that rank 0 made, " + job_.path("a").string());
  EXPECT_NE(run.err.find("output_dir of rank 1 is " + job_.path("b").string()), std::string::npos);
  EXPECT_FALSE(fs::exists(job_.path("a/run/metrics.jsonl")));
}

}  // namespace
}  // namespace snug::train
