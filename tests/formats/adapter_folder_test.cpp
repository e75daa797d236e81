// What is said of folders that are no PEFT adapters, by what they are.
#include "formats/adapter/adapter_folder.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "formats/adapter/adapter_config.h"

namespace snug::formats {
namespace {

using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

std::string refusal_of(const std::filesystem::path& folder) {
  return user_error_of([&] { read_adapter_config(folder); });
}

std::string refusal_with(const char* file, const char* text = "{}") {
  const TemporaryFolder folder;
  folder.write(file, text);
  return refusal_of(folder.path());
}

TEST(AdapterFolder, WithoutAConfigFilesSayWhatItIs) {
  EXPECT_TRUE(contains(refusal_with("config.json"), "it is a whole model, not an adapter"));
  EXPECT_TRUE(contains(refusal_with("adapters.safetensors"), "mlx_lm.fuse"));
  EXPECT_TRUE(contains(refusal_with("pytorch_lora_weights.safetensors"), "diffusers"));
  EXPECT_TRUE(contains(refusal_with("new_embeddings.safetensors"), "vLLM"));
  EXPECT_TRUE(contains(refusal_with("style.safetensors"), "kohya"));
  EXPECT_TRUE(contains(refusal_with("adapter_model.safetensors"),
                       "the adapter_config.json that says how to apply them is missing"));
  EXPECT_TRUE(
      contains(refusal_with("notes.txt"), "there is no adapter_config.json here; expected"));
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(refusal_of(folder / "none"), "there is no such folder"));
  EXPECT_TRUE(contains(refusal_of(folder.write("adapter_model.safetensors", "x")),
                       "this is a file; give the folder that it is in"));
}

TEST(AdapterFolder, WeightsThatAreNotReadAreNamed) {
  const TemporaryFolder folder;
  for (const char* name :
       {"adapter_model.safetensors", "adapter_model.bin", "optimizer.pt", "optimizer.safetensors",
        "optimizer-rank-00000-of-00002.safetensors", "scheduler.pt", "rng_state_0.pth", "scaler.pt",
        "training_args.bin", "tokenizer.model", "README.md"})
    folder.write(name, "x");
  EXPECT_TRUE(other_weights(folder.path()).empty());
  const std::vector<std::string> others{
      "additional.pt",           "model.safetensors",    "new_embeddings.safetensors",
      "non_lora_trainables.bin", "trainable_params.bin", "value_head.bin",
      "value_head.safetensors",  "vit.safetensors"};
  for (const std::string& name : others) folder.write(name, "x");
  EXPECT_EQ(other_weights(folder.path()), others);
}

TEST(AdapterFolder, OfARunTheOneToGiveIsNamed) {
  const TemporaryFolder run;
  run.write("checkpoint-20/adapter_config.json", "{}");
  run.write("checkpoint-9/adapter_config.json", "{}");
  run.write("config.json", "{}");
  EXPECT_TRUE(contains(refusal_of(run.path()), "give adapter=" + (run / "checkpoint-20").string()));
  run.write("adapter/adapter_config.json", "{}");
  EXPECT_TRUE(contains(refusal_of(run.path()),
                       "it is a run's folder: give adapter=" + (run / "adapter").string()));
  const TemporaryFolder several;
  several.write("french/adapter_config.json", "{}");
  EXPECT_TRUE(contains(refusal_of(several.path()), "it is a folder of adapters: give adapter=" +
                                                       (several / "french").string()));
}

TEST(AdapterFolder, ConfigsOfOtherToolsAreNamed) {
  const auto refusal = [](const char* text) { return refusal_with("adapter_config.json", text); };
  EXPECT_TRUE(contains(refusal(R"({"fine_tune_type": "lora", "num_layers": 2,
                                   "lora_parameters": {"rank": 4, "scale": 20.0}})"),
                       "this is an adapter of mlx-lm"));
  EXPECT_TRUE(contains(refusal(R"({"lora_layers": 16, "lora_rank": 8})"), "mlx-lm"));
  EXPECT_TRUE(
      contains(refusal(R"({"model_class": "BertAdapterModel", "config": {}})"), "AdapterHub"));
  EXPECT_TRUE(contains(refusal(R"({"r": 8})"), "'peft_type' is missing; expected 'LORA'"));
  EXPECT_TRUE(contains(refusal(R"({"peft_type": "VERA"})"), "'peft_type' is 'VERA'; expected"));
  EXPECT_TRUE(contains(refusal(R"({"peft_type": "VERA"})"), "Merge it into its model with PEFT"));
  EXPECT_TRUE(contains(refusal(R"({"peft_type": "PREFIX_TUNING"})"), "cannot be merged"));
}

}  // namespace
}  // namespace snug::formats
