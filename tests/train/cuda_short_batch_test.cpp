// An evaluation whose last batch has fewer rows than there is room for, on the emulated device with
// a cuDNN that makes NaN next to an empty segment.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "refusals.h"
#include "train/train.h"

namespace snug::train {
namespace {

// The loss of three rows, in batches of two.
double evaluation_loss(cuda_emulator::AttentionFault fault) {
  const testing::TemporaryFolder folder;
  folder.write("shape/config.json", R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 64, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "initializer_range": 0.02,
    "tie_word_embeddings": false, "hidden_act": "silu"})");
  std::string rows;
  for (const int length : {16, 9, 12}) {
    nlohmann::json ids = nlohmann::json::array();
    for (int i = 0; i < length; ++i) ids.push_back((length + 5 * i) % 64);
    rows += nlohmann::json{{"input_ids", ids}}.dump() + "\n";
  }
  folder.write("rows.jsonl", rows);
  const std::string data = (folder / "rows.jsonl").string();
  cuda_emulator::attention_fault = fault;
  const testing::CapturedStream said(stderr);
  const formats::Recipe recipe = formats::parse_recipe(
      "model: " + (folder / "shape").string() + "\ndata: " + data + "\neval_data: " + data +
          "\nbackend: cuda\ninit: random\nmethod: lora\ncompute_dtype: bf16\nmax_length: 16\n"
          "per_device_train_batch_size: 2\nmax_segments: 1\nmax_steps: 1\nsave_steps: 0\n",
      "recipe.yaml", {"output_dir=" + (folder / "run").string()});
  EXPECT_EQ(train(recipe), 0);
  cuda_emulator::attention_fault = cuda_emulator::AttentionFault::none;
  EXPECT_EQ(said.text().find("own kernels are planned"), std::string::npos) << said.text();
  std::istringstream lines(base::read_text_file(folder / "run" / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const auto record = nlohmann::json::parse(line); record.contains("eval_loss"))
      return record["eval_loss"].is_null() ? -1 : record["eval_loss"].get<double>();
  return -2;
}

TEST(CudaShortBatch, HasNoEmptySegment) {
  const double loss = evaluation_loss(cuda_emulator::AttentionFault::none);
  EXPECT_GT(loss, 0);
  EXPECT_EQ(evaluation_loss(cuda_emulator::AttentionFault::empty_segments), loss);
}

}  // namespace
}  // namespace snug::train
