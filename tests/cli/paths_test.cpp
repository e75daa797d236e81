// Paths that lead to something else than they should: each is refused at once, with an exit code
// that says whose mistake it is, and nothing that was there is written over.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "binary_run.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;

// A model without weights and data for it, next to things that are no files.
class Paths : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_shape(folder_, "model");
    folder_.write("data.jsonl", kTinyData);
    ::mkfifo((folder_ / "pipe.jsonl").c_str(), 0600);
    fs::create_symlink("loop", folder_ / "loop");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::vector<std::string> job(const char* verb) const {
    return {verb,
            "model=" + path("model"),
            "init=random",
            "data=" + path("data.jsonl"),
            "max_length=256",
            "max_steps=1",
            "threads=1",
            "output_dir=" + path("run")};
  }

  // A job that one word makes wrong.
  void expect_refused(const std::string& word, const std::string& part) const {
    const BinaryRun run = run_snug(joined(job("train"), {word}));
    EXPECT_EQ(run.exit_code, 2) << word << ": " << run.err;
    EXPECT_TRUE(contains(run.last_line(), part)) << word;
    EXPECT_FALSE(contains(run.err, "filesystem error")) << word;
    EXPECT_FALSE(fs::exists(folder_ / "run")) << word;
  }

  TemporaryFolder folder_;
};

TEST_F(Paths, PipesAreNotWaitedFor) {
  expect_refused("data=" + path("pipe.jsonl"), "this is a pipe");
  expect_refused("eval_data=" + path("pipe.jsonl"), "this is a pipe");
  expect_refused(path("pipe.jsonl"), "this is a pipe");
  fs::remove(folder_ / "model/tokenizer.json");
  fs::rename(folder_ / "pipe.jsonl", folder_ / "model/tokenizer.json");
  expect_refused("seed=1", "this is a pipe");
  fs::remove(folder_ / "model/config.json");
  fs::rename(folder_ / "model/tokenizer.json", folder_ / "model/config.json");
  expect_refused("seed=1", "this is a pipe");
}

TEST_F(Paths, LoopsAndLongNamesAreTheUsersMistakes) {
  const std::string long_name(300, 'x');
  for (const char* key : {"model", "data", "output_dir", "adapter", "resume_from_checkpoint"}) {
    expect_refused(std::string(key) + "=" + path("loop"), "loop");
    expect_refused(std::string(key) + "=" + path(long_name), long_name);
  }
  expect_refused("output_dir=" + path("data.jsonl/run"), "data.jsonl is a file");
}

TEST_F(Paths, AHomeThatCannotBeEnteredIsNoObstacle) {
  ::setenv("HOME", path("loop").c_str(), 1);
  const BinaryRun run = run_snug(joined(job("plan"), {"--json"}));
  ::unsetenv("HOME");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(Paths, ErrorsAreJsonWhereThatWasAskedFor) {
  const BinaryRun wrong = run_snug(joined(job("train"), {"lora_r=0", "--json"}));
  EXPECT_EQ(wrong.exit_code, 2);
  const json error = json::parse(wrong.out)["error"];
  EXPECT_EQ(error["exit_code"], 2);
  EXPECT_EQ(wrong.last_line(), "snug: error: " + error["message"].get<std::string>() + "\n");
  const BinaryRun bytes = run_snug(joined(job("train"), {"chat_template=\xff", "--json"}));
  EXPECT_EQ(json::parse(bytes.out)["error"]["exit_code"], 2);
  // A plan is printed whole; it says itself that it does not fit.
  const BinaryRun plan = run_snug(joined(job("plan"), {"device_memory=100000", "--json"}));
  EXPECT_EQ(plan.exit_code, 3);
  EXPECT_EQ(json::parse(plan.out)["fits"], false);
  const BinaryRun train = run_snug(joined(job("train"), {"device_memory=100000", "--json"}));
  EXPECT_EQ(train.exit_code, 3);
  EXPECT_EQ(json::parse(train.out)["error"]["exit_code"], 3);
}

TEST_F(Paths, LogitsReplaceNoFile) {
  const std::string weights = folder_.write("weights.safetensors", "precious").string();
  const std::vector<std::string> words{"score", "model=" + path("model"), "init=random",
                                       "ids=1 2 3", "logits_out=" + weights};
  const BinaryRun run = run_snug(words);
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(contains(run.err, "is there already"));
  EXPECT_EQ(contents_of(weights), "precious");
  EXPECT_EQ(run_snug(joined(words, {"logits_out=" + path("none/l.safetensors")})).exit_code, 2);
  EXPECT_EQ(run_snug(joined(words, {"logits_out=" + path("new.safetensors")})).exit_code, 0);
}

TEST_F(Paths, AModelIsFoundInTheCacheOfTheHub) {
  const TemporaryFolder cache;
  cache.write("models--org--tiny/refs/main", "c0ffee");
  fs::create_directories(cache / "models--org--tiny/snapshots");
  fs::rename(folder_ / "model", cache / "models--org--tiny/snapshots/c0ffee");
  ::setenv("HF_HUB_CACHE", cache.path().c_str(), 1);
  const BinaryRun plan = run_snug(joined(job("plan"), {"model=org/tiny", "--json"}));
  const BinaryRun ids = run_snug({"tokenize", "model=org/tiny", "prompt=a"});
  const BinaryRun gone = run_snug(joined(job("plan"), {"model=org/tiny@v2"}));
  ::unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(ids.out, "97\n") << ids.err;
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_TRUE(contains(gone.err, "hf download org/tiny --revision v2"));
}

#ifndef __SANITIZE_ADDRESS__
// Limits what processes may map, from now on.
class AddressSpace {
 public:
  explicit AddressSpace(rlim_t bytes) {
    ::getrlimit(RLIMIT_AS, &before_);
    const struct rlimit limited { bytes, before_.rlim_max };
    ::setrlimit(RLIMIT_AS, &limited);
  }
  ~AddressSpace() { ::setrlimit(RLIMIT_AS, &before_); }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

 private:
  struct rlimit before_ {};
};

// What the files say is compared before memory is taken for what config.json says.
TEST_F(Paths, ShapesAreComparedBeforeMemoryIsTaken) {
  const BinaryRun base = run_snug(joined(job("train"), {"method=full"}));
  ASSERT_EQ(base.exit_code, 0) << base.err;
  std::string config = contents_of(folder_ / "run/model/config.json");
  const std::string from = "\"vocab_size\": 258";
  config.replace(config.find(from), from.size(), "\"vocab_size\": 16777216");
  folder_.write("run/model/config.json", config);
  const AddressSpace limit(rlim_t{2} << 30);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", "prompt=a"},
        {"score", "ids=1 2"},
        {"train", "data=" + path("data.jsonl"), "output_dir=" + path("next")}}) {
    const BinaryRun run = run_snug(joined(words, {"model=" + path("run/model"), "threads=1"}));
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(contains(run.err, "set vocab_size in config.json to 258")) << words[0];
  }
}
#endif

// An adapter is opened before the weights of its base model are read.
TEST_F(Paths, AWrongAdapterIsFoundBeforeTheWeights) {
  ASSERT_EQ(run_snug(joined(job("train"), {"method=full"})).exit_code, 0);
  ASSERT_EQ(run_snug(joined(job("train"), {"lora_r=4", "output_dir=" + path("four")})).exit_code,
            0);
  const BinaryRun run =
      run_snug({"train", "model=" + path("run/model"), "data=" + path("data.jsonl"), "lora_r=8",
                "adapter=" + path("four/adapter"), "output_dir=" + path("next"), "threads=1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.last_line(), "lora_r = 8"));
  EXPECT_FALSE(contains(run.err, "GB of weights")) << run.err;
  EXPECT_FALSE(fs::exists(folder_ / "next"));
}

}  // namespace
}  // namespace snug::cli
