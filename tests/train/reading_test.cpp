// The memory of a process that reads data, from its first instruction: never above what it planned,
// whatever the form and the size of the data, and host_memory is obeyed before they are read.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "../cli/binary_run.h"
#include "../cli/tiny_model.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using testing::TemporaryFolder;

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr const char* kLine =
    "And the quick brown fox jumps over 17 lazy dogs, it's said; then rests.\n";

struct MeasuredRun : BinaryRun {
  int64_t peak_bytes = 0;  // as the kernel counts it, from exec to exit
};

MeasuredRun measure_snug(const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  MeasuredRun run;
  int status = 0;
  rusage usage{};
  ::wait4(start_snug(words, folder.path()), &status, 0, &usage);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.peak_bytes = usage.ru_maxrss * 1024;
  run.out = contents_of(folder / "out");
  run.err = contents_of(folder / "err");
  return run;
}

struct DataCase {
  std::string name;
  std::string file;
  void (*write)(std::ofstream& out, int64_t bytes);
};

void write_text(std::ofstream& out, int64_t bytes) {
  for (int64_t done = 0; done < bytes; done += 72) out << kLine;
}
void write_record(std::ofstream& out, int64_t bytes) {
  out << "{\"text\": \"";
  for (int64_t done = 0; done < bytes; done += 72) out << std::string(kLine, 71) << "\\n";
  out << "\"}\n";
}
void write_records(std::ofstream& out, int64_t bytes) {
  for (int64_t part = 0; part < 12; ++part) write_record(out, bytes / 12);
}
void write_short_records(std::ofstream& out, int64_t bytes) {
  for (int64_t done = 0; done < bytes; done += 84)
    out << "{\"text\": \"" << std::string(kLine, 71) << "\"}\n";
}
void write_ids(std::ofstream& out, int64_t bytes) {
  out << "{\"input_ids\": [7";
  for (int64_t done = 0; done < bytes; done += 16) out << ", 97, 104, 3, 21";
  out << "]}\n";
}

class Reading : public ::testing::TestWithParam<DataCase> {};

TEST_P(Reading, StaysWithinThePlan) {
  const TemporaryFolder folder;
  write_tiny_shape(folder, "model");
  const auto data = folder.path() / GetParam().file;
  {
    std::ofstream out(data);
    GetParam().write(out, 16 * kMebibyte);
  }
  const auto output = folder.path() / "run";
  const std::vector<std::string> words = {"model=" + (folder.path() / "model").string(),
                                          "init=random", "data=" + data.string(), "max_length=64",
                                          "threads=2"};
  const MeasuredRun planned = measure_snug(joined({"plan", "--json"}, words));
  ASSERT_EQ(planned.exit_code, 0) << planned.output();
  const Json plan = Json::parse(planned.out);
  const auto promised = plan["resident"]["peak_bytes"].get<int64_t>();
  EXPECT_LE(planned.peak_bytes, promised);
  // Of 16 MiB the process must not hold more than its bound and the index, 12 bytes and two orders
  // of 8 for each document.
  EXPECT_LE(promised, 150 * kMebibyte);
  EXPECT_GE(plan["reading"]["peak_bytes"].get<int64_t>(), 64 * kMebibyte);

  const MeasuredRun trained = measure_snug(
      joined(joined({"train"}, words), {"max_steps=2", "output_dir=" + output.string()}));
  ASSERT_EQ(trained.exit_code, 0) << trained.output();
  const Json measured = Json::parse(contents_of(output / "measured.json"));
  EXPECT_LE(trained.peak_bytes, promised);
  // What a run says of itself is what the kernel counted.
  EXPECT_NEAR(measured["resident"]["peak_bytes"].get<double>(),
              static_cast<double>(trained.peak_bytes), 2.0 * kMebibyte);
}

INSTANTIATE_TEST_SUITE_P(Forms, Reading,
                         ::testing::Values(DataCase{"text", "data.txt", write_text},
                                           DataCase{"record", "data.jsonl", write_record},
                                           DataCase{"records", "data.jsonl", write_records},
                                           DataCase{"short_records", "data.jsonl",
                                                    write_short_records},
                                           DataCase{"ids", "data.jsonl", write_ids}),
                         [](const auto& test) { return test.param.name; });

TEST(Reading, HostMemoryIsObeyedBeforeDataAreRead) {
  const TemporaryFolder folder;
  write_tiny_shape(folder, "model");
  {
    std::ofstream out(folder.path() / "data.txt");
    write_text(out, 16 * kMebibyte);
  }
  for (const std::string verb : {"plan", "train"}) {
    const MeasuredRun run =
        measure_snug({verb, "model=" + (folder.path() / "model").string(), "init=random",
                      "max_length=64", "data=" + (folder.path() / "data.txt").string(),
                      "host_memory=60MiB", "output_dir=" + (folder.path() / "run").string()});
    EXPECT_EQ(run.exit_code, 3) << run.output();
    EXPECT_NE(run.err.find("reading the data and the tokenizer takes up to"), std::string::npos)
        << run.err;
    EXPECT_EQ(run.err.find("records of form"), std::string::npos) << run.err;
  }
}

// A run of a billion epochs is a long one; one of more than can be counted is refused.
TEST(Reading, EpochsThatCannotBeCountedAreRefused) {
  const TemporaryFolder folder;
  write_tiny_shape(folder, "model");
  std::string lines;
  for (int i = 0; i < 50; ++i)
    lines += "{\"text\": \"" + std::string(static_cast<size_t>(5 + i % 30), 'a') + "\"}\n";
  folder.write("data.jsonl", lines);
  for (const char* epochs : {"1e30", "1e15", "1e9"}) {
    const MeasuredRun run =
        measure_snug({"train", "model=" + (folder.path() / "model").string(), "init=random",
                      "max_length=64", "data=" + (folder.path() / "data.jsonl").string(),
                      std::string("num_train_epochs=") + epochs,
                      "output_dir=" + (folder.path() / "run").string()});
    EXPECT_EQ(run.exit_code, 2) << run.output();
    EXPECT_NE(run.err.find("'num_train_epochs' is"), std::string::npos) << run.err;
  }
}

// What held no token ended the process.
TEST(Reading, RecordsWithoutATokenAreCountedOrNamed) {
  const TemporaryFolder folder;
  write_tiny_shape(folder, "model");
  const auto train = [&](const std::string& contents, const std::string& eval) {
    folder.write("data.jsonl", contents);
    std::vector<std::string> words = {"train",
                                      "model=" + (folder.path() / "model").string(),
                                      "init=random",
                                      "max_length=64",
                                      "max_steps=1",
                                      "data=" + (folder.path() / "data.jsonl").string(),
                                      "overwrite_output_dir=true",
                                      "output_dir=" + (folder.path() / "run").string()};
    if (!eval.empty()) words.push_back("eval_data=" + folder.write("eval.jsonl", eval).string());
    return measure_snug(words);
  };
  const std::string good = "{\"text\": \"good\"}\n";
  const std::string empty = "{\"text\": \"</s>\"}\n{\"text\": \"\"}\n";
  EXPECT_EQ(train(empty, "").exit_code, 2);
  const MeasuredRun eval = train(good, empty);
  EXPECT_EQ(eval.exit_code, 2);
  EXPECT_NE(eval.err.find("eval.jsonl"), std::string::npos) << eval.err;
  const MeasuredRun both = train(good + empty, "");
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_NE(both.err.find("2 texts without a token left out"), std::string::npos) << both.err;
}

}  // namespace
}  // namespace snug::cli
