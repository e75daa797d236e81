// A run that goes on computes with the algorithms that it chose at first, on the emulated device,
// whose algorithms give different bits.
#include <gtest/gtest.h>

#include <fstream>

#include "../base/captured_stream.h"
#include "algorithms.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "train/train.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

void run(const fs::path& output) {
  const formats::Recipe recipe = formats::parse_recipe(
      "model: examples/wordnet\n"
      "data: examples/wordnet/train.jsonl\n"
      "backend: cuda\n"
      "method: lora\n"
      "max_length: 64\n"
      "per_device_train_batch_size: 1\n"
      "max_steps: 4\n"
      "save_steps: 2\n"
      "resume_from_checkpoint: auto\n",
      "recipe.yaml", {"output_dir=" + output.string()});
  ASSERT_EQ(train(recipe), 0);
}

std::string adapter_of(const fs::path& output) {
  return base::read_text_file(output / "adapter" / "adapter_model.safetensors");
}

// What a run said.
std::string log_of(const fs::path& output) {
  const testing::CapturedStream said(stderr);
  run(output);
  return said.text();
}

// What a run leaves that was killed after step 2.
void cut_short(const fs::path& output) {
  for (const char* name : {"checkpoint-4", "adapter", "measured.json", "report.html"})
    ASSERT_GT(fs::remove_all(output / name), 0U) << name;
}

TEST(CudaResume, ComputesWithTheAlgorithmsOfTheRunBefore) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder / "run";
  run(output);
  const std::string whole = adapter_of(output);
  const std::string choices = base::read_text_file(output / "algorithms.json");
  // From here on another algorithm is the fastest.
  std::swap(cuda_emulator::algorithms[0].extra, cuda_emulator::algorithms[3].extra);
  cut_short(output);
  run(output);
  EXPECT_EQ(adapter_of(output), whole);
  EXPECT_EQ(base::read_text_file(output / "algorithms.json"), choices);

  cut_short(output);
  base::write_file_atomically(output / "algorithms.json", choices.substr(0, 100));
  const std::string log = log_of(output);
  EXPECT_NE(log.find("algorithms.json:"), std::string::npos) << log;
  EXPECT_NE(adapter_of(output), whole) << "the algorithms agree to the last bit";
  EXPECT_NE(base::read_text_file(output / "algorithms.json"), choices);

  cut_short(output);
  fs::remove(output / "algorithms.json");
  EXPECT_NE(log_of(output).find("algorithms.json is not there. Algorithms are timed again"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(output / "algorithms.json"));

  // One that was killed before its first checkpoint starts afresh in its folder, and times again.
  cut_short(output);
  fs::remove_all(output / "checkpoint-2");
  base::write_file_atomically(output / "algorithms.json", choices);
  run(output);
  EXPECT_NE(base::read_text_file(output / "algorithms.json"), choices);
}

}  // namespace
}  // namespace snug::train
