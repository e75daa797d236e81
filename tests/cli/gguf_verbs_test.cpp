// `snug export gguf` and `snug import gguf` of the built binary: there and back, and mistakes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "binary_run.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;

// A model with a tokenizer.
const std::string kGgufModel = "model=examples/wordnet";

std::string folder_named(const TemporaryFolder& folder, const char* name) {
  return "output_dir=" + (folder / name).string();
}

void expect_within_plan(const json& said) {
  const auto& planned = said["planned"];
  EXPECT_LE(said["measured"]["result_bytes"], planned["result_bytes"]);
  EXPECT_LE(
      said["measured"]["resident_peak_bytes"].get<int64_t>(),
      planned["buffer_bytes"].get<int64_t>() + planned["outside_bytes"].get<int64_t>() + (4 << 20));
}

TEST(GgufVerbs, ThereAndBackGivesTheSameWeightsAndTokens) {
  const TemporaryFolder folder;
  const BinaryRun exported = run_snug(
      {"export", "gguf", kGgufModel, "types=[f32, q8_0]", folder_named(folder, "made"), "--json"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const auto said = json::parse(exported.out);
  EXPECT_EQ(said["files"], (json{"wordnet-F32.gguf", "wordnet-Q8_0.gguf"}));
  expect_within_plan(said);
  // The file under the name that other commands have for a model.
  const std::string file = (folder / "made/wordnet-F32.gguf").string();
  const BinaryRun imported =
      run_snug({"import", "gguf", "model=" + file, folder_named(folder, "again"), "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  expect_within_plan(json::parse(imported.out));
  const auto tokens = [](const std::string& model) {
    return run_snug({"tokenize", model, "prompt=A dog is an animal."}).out;
  };
  EXPECT_EQ(tokens("model=" + (folder / "again").string()), tokens(kGgufModel));
  const BinaryRun score = run_snug({"score", kGgufModel, "ids=1 5 9 7", "threads=1"});
  const BinaryRun score_again =
      run_snug({"score", "model=" + (folder / "again").string(), "ids=1 5 9 7", "threads=1"});
  EXPECT_EQ(score.exit_code, 0) << score.err;
  EXPECT_EQ(score_again.out, score.out);
}

// A file as the model of other commands: read as the folder that an import makes of it, which is
// made once, and anew where the file has changed.
class GgufAsModel : public ::testing::Test {
 protected:
  GgufAsModel() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    const BinaryRun made = run_snug(
        {"export", "gguf", kGgufModel, "types=[f32]", folder_named(folder_, "made"), "--json"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }
  ~GgufAsModel() override { ::setenv("XDG_CACHE_HOME", cache_before_.c_str(), 1); }

  fs::path file() const { return folder_ / "made/wordnet-F32.gguf"; }
  std::vector<fs::path> imported() const {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(cache_ / "snug/gguf"))
      folders.push_back(entry.path());
    return folders;
  }
  static BinaryRun run(const std::string& verb, const std::string& model,
                       const std::string& more = "") {
    return run_snug(joined({verb, model}, words_of("threads=1 " + more)));
  }

  TemporaryFolder folder_;
  TemporaryFolder cache_;
  std::string cache_before_ =
      std::getenv("XDG_CACHE_HOME") == nullptr ? "" : std::getenv("XDG_CACHE_HOME");
};

TEST_F(GgufAsModel, GivesWhatItsFolderGives) {
  const std::string model = "model=" + file().string();
  for (const auto& [verb, more] : std::vector<std::pair<std::string, std::string>>{
           {"score", "ids=[1,5,9,7]"},
           {"generate", "ids=[1,5,9,7] max_new_tokens=6 temperature=0"}}) {
    const BinaryRun of_file = run(verb, model, more);
    ASSERT_EQ(of_file.exit_code, 0) << of_file.err;
    EXPECT_EQ(of_file.out, run(verb, kGgufModel, more).out);
    EXPECT_EQ(contains(of_file.err, "imported once to"), verb == "score") << of_file.err;
    EXPECT_EQ(imported().size(), 1U);
  }
  // A folder that lost a part is made anew, at its place.
  const fs::path before = imported().front();
  fs::resize_file(before / "config.json", 10);
  const BinaryRun mended = run("score", model, "ids=[1,5,9,7]");
  EXPECT_TRUE(contains(mended.err, before.string() + " is not as it was made (config.json)"));
  EXPECT_EQ(mended.out, run("score", kGgufModel, "ids=[1,5,9,7]").out);
  EXPECT_EQ(imported(), std::vector<fs::path>{before});
  // A file in place of which another one was written: what was made of the older one stays.
  fs::last_write_time(file(), fs::last_write_time(file()) + std::chrono::seconds(5));
  const BinaryRun again = run("score", model, "ids=[1,5,9,7]");
  EXPECT_TRUE(contains(again.err, "imported once to"));
  EXPECT_TRUE(contains(again.err, before.string() + " is of an older state of this file"));
  EXPECT_EQ(imported().size(), 2U);
  EXPECT_TRUE(fs::exists(before / "config.json"));
}

TEST_F(GgufAsModel, IsFoundNextToTheRecipeAndTrains) {
  const fs::path recipe = folder_.write(
      "made/lora.yaml", "model: wordnet-F32.gguf\ndata: " +
                            fs::absolute("examples/wordnet/heldout.jsonl").string() + "\n");
  const BinaryRun trained = run_snug({"train", recipe.string(), "max_steps=1", "max_length=64",
                                      "threads=1", "output_dir=" + (folder_ / "run").string()});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto config = json::parse(contents_of(folder_ / "run/adapter/adapter_config.json"));
  EXPECT_EQ(config["base_model_name_or_path"], imported().front().string());
}

TEST_F(GgufAsModel, SaysWhatImportSays) {
  const std::string text = folder_.write("text.gguf", "text").string();
  const BinaryRun run = run_snug({"generate", "model=" + text, "ids=1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.last_line(),
            run_snug({"import", "gguf", "file=" + text, folder_named(folder_, "out")}).last_line());
  const fs::path nothing_else = folder_.write("files/b.gguf", "text").parent_path();
  folder_.write("files/a.gguf", "text");
  EXPECT_TRUE(
      contains(run_snug({"generate", "model=" + nothing_else.string(), "ids=1"}).last_line(),
               "has no config.json; expected a Hugging Face model folder; it holds a GGUF file: "
               "give that, as in model=" +
                   nothing_else.string() + "/a.gguf"));
  EXPECT_TRUE(imported().empty());
}

TEST(GgufVerbs, AnAdapterHasAModelfileNextToIt) {
  const TemporaryFolder folder;
  const BinaryRun run = run_snug({"export", "gguf", "adapter=tests/goldens/lora_all_linear/adapter",
                                  "types=[f16]", folder_named(folder, "made"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "the Modelfile takes the base from "));
  expect_within_plan(json::parse(run.out));
  EXPECT_TRUE(contains(contents_of(folder / "made/Modelfile"),
                       "grouped_tied/model\nADAPTER ./lora_all_linear-F16-LoRA.gguf\n"));
}

TEST(GgufVerbs, ExportSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string output = folder_named(folder, "out");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{kGgufModel}, "needs output_dir=FOLDER"},
      {{output}, "model"},
      {{kGgufModel, output, "types="}, "types=: no kind is named. Kinds of GGUF files are: f32"},
      {{kGgufModel, output, "types=[q8_0,q9_0]"}, "there is no kind \"q9_0\""},
      {{kGgufModel, output, "base=examples/wordnet"}, "is for an adapter alone"},
      {{"adapter=examples/wordnet", output}, "there is no adapter_config.json here"},
      {{kGgufModel, "output_dir=tests/goldens"}, "exists and is not empty"},
      {{kGgufModel, output, "max_steps=3"}, "means nothing to snug export gguf"}};
  for (const auto& [words, part] : cases) {
    const BinaryRun run = run_snug(joined({"export", "gguf"}, words));
    EXPECT_EQ(run.exit_code, 2) << part;
    EXPECT_TRUE(contains(run.last_line(), part));
    EXPECT_EQ(folder.count(), 0U) << part;
  }
}

TEST(GgufVerbs, ImportSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const TemporaryFolder files;
  for (const char* name : {"b-q4.GGUF", "a-q8.gguf", "README.md"}) files.write(name, "text");
  const std::string output = folder_named(folder, "out");
  const std::string here = files.path().string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"file=" + here + "/a-q8.gguf"}, "needs output_dir=FOLDER"},
      {{output}, "needs file=FILE"},
      {{output, "file="}, "needs file=FILE"},
      {{output, "file=a.gguf", "model=a.gguf"}, "give one"},
      {{output, "file=no/such.gguf"}, "no/such.gguf: No such file"},
      {{output, "file=" + here},
       "is a folder; give the file in it, as in file=" + here +
           "/a-q8.gguf. It has a-q8.gguf, b-q4.GGUF"},
      {{output, here}, "It has a-q8.gguf, b-q4.GGUF"},
      {{output, "model_name_or_path=examples/wordnet"}, "no .gguf file is in it"},
      {{output, "file=" + here + "/README.md"}, "README.md: this is a text file, not GGUF"},
      {{output, here + "/README.md"}, "README.md: this is a text file, not GGUF"}};
  for (const auto& [words, part] : cases) {
    const BinaryRun run = run_snug(joined({"import", "gguf"}, words));
    EXPECT_EQ(run.exit_code, 2) << part;
    EXPECT_TRUE(contains(run.last_line(), part));
    EXPECT_EQ(folder.count(), 0U) << part;
  }
}

}  // namespace
}  // namespace snug::cli
