// Version 2 of LLaMA-Adapter through the binary: trained on bases in 16 and 4 bits, saved, resumed,
// trained on, asked; and what it does not go with is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "binary_run.h"
#include "formats/folder/safetensors_file.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

constexpr const char* kAdapterFile = "adapter/adapter_model.safetensors";

class AdapterV2 : public ::testing::TestWithParam<std::string> {
 protected:
  AdapterV2() {
    write_tiny_shape(folder_, "shape");
    folder_.write("data.jsonl", kTinyData);
    const BinaryRun full = train("method=full init=random model=" + path("shape"), "base");
    EXPECT_EQ(full.exit_code, 0) << full.err;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  BinaryRun train(const std::string& words, const std::string& output) const {
    return run_snug(joined({"train", "data=" + path("data.jsonl"), "max_length=160", "threads=2",
                            "compute_dtype=fp32", "per_device_train_batch_size=2", "max_steps=4",
                            "save_steps=2", "output_dir=" + path(output)},
                           words_of(words)));
  }

  // The words of a base, and of a method on it.
  std::string on_base(const std::string& method) const {
    return fmt::format("{} model={} {}", method, path("base/model"), GetParam());
  }

  std::vector<double> losses(const std::string& output) const {
    std::vector<double> found;
    std::istringstream lines(contents_of(folder_ / output / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (const json record = json::parse(line); record.contains("loss"))
        found.push_back(record["loss"].get<double>());
    return found;
  }

  testing::TemporaryFolder folder_;
};

TEST_P(AdapterV2, BeginsAsTheModelAndGoesOn) {
  const BinaryRun lora = train(on_base("method=lora lora_dropout=0"), "lora");
  ASSERT_EQ(lora.exit_code, 0) << lora.err;
  const std::string method = on_base("method=adapter_v2 adapter_layers=1 learning_rate=0.02");
  const BinaryRun tuned = train(method, "tuned");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  // Of the model as it begins, the same but for rounding.
  EXPECT_NEAR(losses("tuned").front(), losses("lora").front(), 1e-5);
  EXPECT_LT(losses("tuned").back(), losses("tuned").front());

  const json config = json::parse(contents_of(folder_ / "tuned/adapter/adapter_config.json"));
  EXPECT_EQ(config["peft_type"], "LLAMA_ADAPTER_V2");
  EXPECT_EQ(config["adapter_gates"], "head");
  const formats::SafetensorsFile adapter(path(std::string("tuned/") + kAdapterFile));
  for (const char* name :
       {"model.layers.1.self_attn.adaption_prompt", "model.layers.1.self_attn.adaption_gate",
        "model.layers.0.self_attn.k_proj.adapter_bias",
        "model.layers.1.mlp.down_proj.adapter_scale", "model.layers.0.input_layernorm.weight",
        "model.norm.weight", "lm_head.adapter_bias", "lm_head.adapter_scale"})
    EXPECT_NE(adapter.find(fmt::format("base_model.model.{}", name)), nullptr) << name;
  EXPECT_EQ(adapter.find("base_model.model.model.layers.0.self_attn.adaption_prompt"), nullptr);

  // Half of it, then the rest from the checkpoint: the same bits.
  std::filesystem::create_directories(folder_ / "again");
  const BinaryRun resumed =
      train(method + " resume_from_checkpoint=" + path("tuned/checkpoint-2"), "again");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(contents_of(folder_ / "again" / kAdapterFile),
            contents_of(folder_ / "tuned" / kAdapterFile));

  // What the recipe leaves open is the adapter's, which training goes on with.
  const std::string with_adapter = "adapter=" + path("tuned/adapter");
  const BinaryRun more =
      train(on_base("method=adapter_v2 learning_rate=0 weight_decay=0 " + with_adapter), "more");
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_LT(losses("more").front(), losses("tuned").front());
  EXPECT_EQ(contents_of(folder_ / "more" / kAdapterFile),
            contents_of(folder_ / "tuned" / kAdapterFile));
  const BinaryRun other = train(on_base("method=adapter " + with_adapter), "other");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "was trained with method=adapter_v2")) << other.err;
}

TEST_P(AdapterV2, IsAsked) {
  const BinaryRun tuned = train(on_base("method=adapter_v2 learning_rate=0.02"), "tuned");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const auto ask = [&](const std::string& verb, const std::string& more) {
    const BinaryRun run = run_snug(
        joined({verb, "threads=2", "compute_dtype=fp32", "--json"}, words_of(on_base(more))));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  const std::string with_adapter = " adapter=" + path("tuned/adapter");
  EXPECT_NE(ask("score", "ids=1,5,9,7" + with_adapter), ask("score", "ids=1,5,9,7"));
  EXPECT_FALSE(ask("generate", "ids=1,5,9,7 max_new_tokens=8" + with_adapter).empty());
}

std::string name_of(const ::testing::TestParamInfo<std::string>& base) {
  constexpr std::array kNames{"whole", "nf4", "nested"};
  return kNames.at(base.index);
}

INSTANTIATE_TEST_SUITE_P(Bases, AdapterV2,
                         ::testing::Values("", "load_in_4bit=true double_quant=false",
                                           "load_in_4bit=true double_quant=true"),
                         name_of);

TEST(AdapterV2Refusals, SayWhyAndWhatToUse) {
  const testing::TemporaryFolder folder;
  const auto model_of = [](const std::string& name) {
    return fmt::format("model=tests/goldens/{}/model", name);
  };
  struct Case {
    std::string model;
    const char* word;
    const char* reason;
  };
  const char* of_pairs = "is not built for";
  for (const Case& wrong :
       {Case{model_of("mixtral"), "max_length=8", "mixture of experts"},
        Case{model_of("qwen3_moe"), "max_length=8", "mixture of experts"},
        Case{model_of("gpt_oss"), "max_length=8", "mixture of experts"},
        Case{model_of("phi"), "max_length=8", "the model's head has one of its own"},
        Case{model_of("t5"), "max_length=8", "is adapter_v2, which is not built for encoder"},
        Case{model_of("basic"), "objective=dpo", of_pairs},
        Case{model_of("basic"), "objective=orpo", of_pairs},
        Case{model_of("basic"), "objective=kto", of_pairs},
        Case{model_of("basic"), "lora_r=4", "lora_r"}}) {
    const BinaryRun run = run_snug({"plan", wrong.model, "method=adapter_v2", wrong.word});
    EXPECT_EQ(run.exit_code, 2) << wrong.model << " " << wrong.word;
    EXPECT_TRUE(contains(run.err, wrong.reason)) << run.err;
  }
  // An adapter that says it is one of such a model.
  folder.write("adapter/adapter_config.json",
               R"({"peft_type": "LLAMA_ADAPTER_V2", "adapter_len": 3, "adapter_layers": 1,
                   "adapter_gates": "head"})");
  const BinaryRun asked =
      run_snug({"score", model_of("phi"), "ids=1 2 3", "adapter=" + (folder / "adapter").string()});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_TRUE(contains(asked.err, "the model's head has one of its own")) << asked.err;
}

}  // namespace
}  // namespace snug::cli
