// `snug quantize` of the built binary.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "binary_run.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;

const std::string kModel = "model=tests/goldens/grouped_tied/model";

std::string output_in(const TemporaryFolder& folder) {
  return "output_dir=" + (folder / "out").string();
}

TEST(Quantize, SaysWhatItTakesAndWhatItTook) {
  const TemporaryFolder folder;
  const BinaryRun run = run_snug({"quantize", kModel, output_in(folder), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto said = json::parse(run.out);
  EXPECT_EQ(said["linears"], 21);
  EXPECT_LE(said["measured"]["result_bytes"], said["planned"]["result_bytes"]);
  const int64_t planned = said["planned"]["buffer_bytes"].get<int64_t>() +
                          said["planned"]["outside_bytes"].get<int64_t>();
  EXPECT_LE(said["measured"]["resident_peak_bytes"], planned + (4 << 20));
  EXPECT_TRUE(fs::exists(folder / "out/model.safetensors"));
}

TEST(Quantize, TakesTransformersNameOfDoubleQuantisation) {
  const TemporaryFolder folder;
  const BinaryRun run =
      run_snug({"quantize", kModel, output_in(folder), "bnb_4bit_use_double_quant=false"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "21 linears, 27216 weights, as NF4\n"));
  const auto config = json::parse(contents_of(folder / "out/config.json"));
  EXPECT_EQ(config["quantization_config"]["bnb_4bit_use_double_quant"], false);
}

TEST(Quantize, MistakesEndWithOneParagraphAndNoFolder) {
  const TemporaryFolder folder;
  const std::string output = output_in(folder);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{kModel}, "output_dir"},
      {{output}, "model"},
      {{"model=llama-3.1-8b", output}, "built-in shape without weights"},
      {{"model=no/such", output}, "hf download no/such"},
      {{"model=tests", output}, "has no config.json"},
      {{"model=tests/goldens/nf4/double", output}, "is quantised already"},
      {{kModel, "output_dir=tests/goldens"}, "exists and is not empty"},
      {{kModel, output, "compute_dtype=fp16"}, "is rounded to bf16 or stays"},
      {{kModel, output, "max_steps=3"}, "means nothing to snug quantize"}};
  for (const auto& [words, part] : cases) {
    const BinaryRun run = run_snug(joined({"quantize"}, words));
    EXPECT_EQ(run.exit_code, 2) << part;
    EXPECT_TRUE(contains(run.last_line(), part));
    EXPECT_EQ(folder.count(), 0U) << part;
  }
}

TEST(Quantize, FullDiskLeavesNothing) {
  const TemporaryFolder folder;
  const std::string command =
      fmt::format("ulimit -f 20; '{}' quantize {} {} >'{}' 2>&1", SNUG_BINARY, kModel,
                  output_in(folder), (folder / "log").string());
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_TRUE(contains(contents_of(folder / "log"), "error"));
  EXPECT_EQ(folder.count(), 1U) << contents_of(folder / "log");
}

}  // namespace
}  // namespace snug::cli
