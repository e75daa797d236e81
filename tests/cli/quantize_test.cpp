// `snug quantize`, `snug dequantize` and `snug expand` of the built binary.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../runtime/mxfp4_folder.h"
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

TEST(Dequantize, MakesAFolderThatTrains) {
  const TemporaryFolder folder;
  testing::make_mxfp4_folder(folder / "in");
  const std::string model = "model=" + (folder / "in").string();
  const std::string steps = "data=examples/wordnet/heldout.jsonl";
  const BinaryRun refused = run_snug({"plan", model, steps});
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_TRUE(contains(refused.err, "snug dequantize model=FOLDER output_dir=FOLDER"));
  const BinaryRun run = run_snug({"dequantize", model, output_in(folder), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto said = json::parse(run.out);
  EXPECT_EQ(said["stacks"], 4);
  EXPECT_LE(said["measured"]["result_bytes"], said["planned"]["result_bytes"]);
  const std::string made = "model=" + (folder / "out").string();
  const BinaryRun scored = run_snug({"score", "ids=1 5 9 7", made, "threads=2"});
  EXPECT_EQ(scored.exit_code, 0) << scored.err;
  const BinaryRun again = run_snug({"dequantize", made, "output_dir=" + (folder / "b").string()});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(contains(again.err, "the folder has no MXFP4"));
  EXPECT_EQ(run_snug({"dequantize", model}).exit_code, 2) << "there is no output_dir";
}

// Log-probabilities of every token, in all their digits.
json scored_tokens(const std::string& model) {
  const BinaryRun run = run_snug({"score", "--json", "ids=1 5 9 7 3 11 2 8", model, "threads=2"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out)["logprobs"];
}

TEST(Expand, ComputesWhatTheBaseDoesUntilTheNewLayersAreTrained) {
  for (const char* model : {"grouped_tied", "gemma2", "gpt2", "gpt_oss"}) {
    SCOPED_TRACE(model);
    const TemporaryFolder folder;
    const std::string base = std::string("model=tests/goldens/") + model + "/model";
    const BinaryRun run =
        run_snug({"expand", base, output_in(folder), "num_new_layers=1", "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto said = json::parse(run.out);
    EXPECT_EQ(said["new_layers"].size(), 1U);
    EXPECT_LE(said["measured"]["result_bytes"], said["planned"]["result_bytes"]);
    EXPECT_EQ(scored_tokens("model=" + (folder / "out").string()), scored_tokens(base));
  }
}

TEST(Expand, SaysWhatToTrainAndThatTrains) {
  const TemporaryFolder folder;
  const BinaryRun run =
      run_snug({"expand", "model=examples/wordnet", output_in(folder), "num_expand=2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string modules = "trainable_modules=model.layers.2,model.layers.5";
  EXPECT_TRUE(contains(run.out, modules)) << run.out;
  const BinaryRun trained = run_snug({"train", "model=" + (folder / "out").string(), "method=full",
                                      modules, "data=examples/wordnet/heldout.jsonl", "max_steps=2",
                                      "max_length=64", "per_device_train_batch_size=2", "threads=2",
                                      "output_dir=" + (folder / "run").string()});
  ASSERT_EQ(trained.exit_code, 0) << trained.output();
  const json config = json::parse(contents_of(folder / "run/model/config.json"));
  EXPECT_EQ(config["num_hidden_layers"], 6);
  const BinaryRun none = run_snug({"expand", "model=examples/wordnet", output_in(folder)});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "needs num_new_layers=N")) << none.err;
}

}  // namespace
}  // namespace snug::cli
