// Every kind of file that Snug reads, damaged: it is read, or refused as a user's mistake, within
// limits of time and memory. A damaged checkpoint is never gone on from with other bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "../cli/binary_run.h"
#include "base/random.h"
#include "findings.h"
#include "mutation.h"
#include "scene.h"

namespace snug::hostile {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

constexpr int64_t kAddressSpaceBytes = int64_t{8} << 30;
constexpr unsigned kLimitSeconds = 60;

struct MutatedFile {
  std::string name;
  std::string file;  // below the folder
  Words words;
  std::string result;  // below the folder: exit code 0 only with the bits of an undamaged file
};

Words training(const Words& more) {
  return cli::joined(
      {"train", "model=FOLDER/model", "data=FOLDER/data.jsonl", "output_dir=FOLDER/out",
       "max_length=64", "per_device_train_batch_size=2", "max_steps=2",
       "lr_scheduler_type=constant", "device_memory=256MiB", "host_memory=256MiB", "threads=1"},
      more);
}

Words resumed(const Words& more) {
  return training(
      cli::joined({"max_steps=4", "resume_from_checkpoint=FOLDER/run/checkpoint-2"}, more));
}

const Words kFull{"method=full", "resume_from_checkpoint=FOLDER/full/checkpoint-2"};
const std::string kAdapter = "out/adapter/adapter_model.safetensors";

const std::vector<MutatedFile> kFiles{
    {"config", "model/config.json", training({}), ""},
    {"config_full", "model/config.json", training({"method=full"}), ""},
    {"tokenizer", "model/tokenizer.json", training({}), ""},
    {"tokenizer_config", "model/tokenizer_config.json", training({}), ""},
    {"weights", "model/model.safetensors", training({}), ""},
    {"weights_in_4_bits", "nf4/model.safetensors", training({"model=FOLDER/nf4", "method=qlora"}),
     ""},
    {"config_in_4_bits", "nf4/config.json", training({"model=FOLDER/nf4", "method=qlora"}), ""},
    {"weights_to_quantize",
     "model/model.safetensors",
     {"quantize", "model=FOLDER/model", "output_dir=FOLDER/out"},
     ""},
    {"adapter_config", "run/adapter/adapter_config.json", training({"adapter=FOLDER/run/adapter"}),
     ""},
    {"adapter", "run/adapter/adapter_model.safetensors", training({"adapter=FOLDER/run/adapter"}),
     ""},
    {"adapter_to_generate_with",
     "run/adapter/adapter_config.json",
     {"generate", "model=FOLDER/model", "adapter=FOLDER/run/adapter", "prompt=a",
      "max_new_tokens=2", "threads=1"},
     ""},
    {"recipe", "recipe.yaml", cli::joined(training({}), {"FOLDER/recipe.yaml"}), ""},
    {"data_jsonl", "data.jsonl", training({}), ""},
    {"data_json", "data.json", training({"data=FOLDER/data.json"}), ""},
    {"data_txt", "data.txt", training({"data=FOLDER/data.txt"}), ""},
    {"data_tokens", "tokens.jsonl", training({"data=FOLDER/tokens.jsonl"}), ""},
    {"data_to_evaluate",
     "data.jsonl",
     {"evaluate", "model=FOLDER/model", "data=FOLDER/data.jsonl", "max_new_tokens=2", "threads=1"},
     ""},
    {"calibration",
     "calibration.json",
     {"plan", "model=FOLDER/model", "calibration=FOLDER/calibration.json", "max_length=64",
      "threads=1"},
     ""},
    {"checkpoint_state", "run/checkpoint-2/trainer_state.json", resumed({}), kAdapter},
    {"checkpoint_optimizer", "run/checkpoint-2/optimizer.safetensors", resumed({}), kAdapter},
    {"checkpoint_adapter", "run/checkpoint-2/adapter_model.safetensors", resumed({}), kAdapter},
    {"checkpoint_adapter_config", "run/checkpoint-2/adapter_config.json", resumed({}), kAdapter},
    {"checkpoint_full_optimizer", "full/checkpoint-2/optimizer.safetensors", resumed(kFull),
     "out/model/model.safetensors"},
    {"checkpoint_full_model", "full/checkpoint-2/model.safetensors", resumed(kFull),
     "out/model/model.safetensors"},
};

constexpr const char* kRecipe =
    "# a recipe\nmethod: lora\nlora_r: 4\nlora_alpha: 8\nlora_dropout: 0.1\n"
    "target_modules: [q_proj, v_proj]\nlearning_rate: 2.0e-3\nwarmup_ratio: 0.05\n"
    "max_grad_norm: 1.0\nrecompute: layer\npacking: true\nchat_template: plain\nseed: 42\n";
constexpr const char* kCalibration =
    "{\"format\": \"snug calibration 4\",\n\"machine\": {\"cpu\": \"a\", \"target\": \"cpu\", "
    "\"libraries\": \"b\", \"date\": \"c\"},\n\"samples\": [\n{\"operation\": \"matmul n t f32 f32 "
    "> f32\", \"shape\": [8,4,2], \"unit\": \"flops\", \"work\": 128, \"seconds\": 3e-07, "
    "\"multiplies\": \"f32\"},\n"
    "{\"operation\": \"cast f32 > bf16\", \"shape\": [600], \"unit\": \"bytes\", \"work\": 600, "
    "\"seconds\": 1.25e-06}]}\n";
constexpr const char* kTokens =
    "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}\n"
    "{\"input_ids\": [4, 5], \"attention_mask\": [1, 1]}\n";
constexpr const char* kArray =
    "[{\"prompt\": \"a\\u00e9\", \"completion\": \"b\"},\n {\"prompt\": \"c\", \"completion\": "
    "\"\xC3\xA9\"}]";

// A folder with one of everything.
void make_files(const testing::TemporaryFolder& folder) {
  make_model(folder.path());
  const auto run = [&](const Words& words) { must_succeed(at(folder.path(), words)); };
  run(training({"output_dir=FOLDER/run", "save_steps=2"}));
  run(training({"output_dir=FOLDER/full", "save_steps=2", "method=full"}));
  run({"quantize", "model=FOLDER/model", "output_dir=FOLDER/nf4"});
  folder.write("recipe.yaml", kRecipe);
  folder.write("calibration.json", kCalibration);
  folder.write("tokens.jsonl", kTokens);
  folder.write("data.json", kArray);
  folder.write("data.txt", "A line.\n\nAnother paragraph, and \xC3\xA9.\n");
}

class MutatedFiles : public ::testing::TestWithParam<size_t> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<testing::TemporaryFolder>();
    make_files(*folder_);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static Ended run(const Words& words) {
    fs::remove_all(*folder_ / "out");
    const testing::TemporaryFolder streams;
    return hostile::run({.words = cli::joined({SNUG_BINARY}, at(folder_->path(), words)),
                         .streams = streams.path(),
                         .limit_seconds = kLimitSeconds,
                         .address_space_bytes = kAddressSpaceBytes});
  }

  static std::string result_of(const MutatedFile& each) {
    return each.result.empty() ? "" : cli::contents_of(*folder_ / each.result);
  }

  static std::unique_ptr<testing::TemporaryFolder> folder_;
};

std::unique_ptr<testing::TemporaryFolder> MutatedFiles::folder_;

std::string problem_of(const Ended& end) {
  if (end.timed_out) return fmt::format("hangs: not at its end after {} s", kLimitSeconds);
  if (end.exit_code == 0) return "";
  if (end.exit_code != 2 && end.exit_code != 3)
    return fmt::format("exit code {}: {}", end.exit_code, end.last_line());
  return end.last_line().starts_with("snug: error: ") ? "" : "no message: " + end.last_line();
}

TEST_P(MutatedFiles, AreReadOrRefused) {
  const MutatedFile& each = kFiles[GetParam()];
  const std::string kind = each.result.empty() ? "mutated_files" : "mutated_checkpoints";
  const fs::path path = *folder_ / each.file;
  const std::string seed = cli::contents_of(path);
  const Ended whole = run(each.words);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::string expected = result_of(each);
  for (int64_t i = 0; i < trials(2, 100); ++i) {
    const std::string trial = fmt::format("{}/{}", each.name, i);
    if (!is_wanted(trial)) continue;
    std::mt19937_64 random(base::hash_name(trial.data(), trial.size()) + options().seed);
    const std::string damaged = mutated(seed, random);
    folder_->write(each.file, damaged);
    const Ended end = run(each.words);
    std::string problem = problem_of(end);
    if (problem.empty() && !each.result.empty() && end.exit_code == 0 &&
        result_of(each) != expected)
      problem = "a damaged checkpoint was gone on from, and the result has other bits";
    record(kind, trial, end.exit_code, problem);
  }
  folder_->write(each.file, seed);
}

INSTANTIATE_TEST_SUITE_P(Files, MutatedFiles, ::testing::Range(size_t{0}, kFiles.size()),
                         [](const auto& test) { return kFiles[test.param].name; });

}  // namespace
}  // namespace snug::hostile
