// Encoder-decoders through the binary: a tiny T5 is trained in full and saved, adapted, resumed,
// quantised, asked and examined; and what is not built for them is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "binary_run.h"
#include "formats/folder/safetensors_file.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

constexpr const char* kAdapterFile = "adapter/adapter_model.safetensors";

// Prompts of three tokens whose answer is the same tokens, each one higher.
std::string counting() {
  std::string data;
  for (int first = 2; first < 22; ++first) {
    const json prompt{first, first + 2, first + 4};
    const json answer{first + 1, first + 3, first + 5, 1};
    data += json{{"input_ids", prompt}, {"labels", answer}}.dump() + "\n";
  }
  return data;
}

class EncoderDecoders : public ::testing::TestWithParam<std::string> {
 protected:
  EncoderDecoders() { folder_.write("data.jsonl", counting()); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string golden() const { return "tests/goldens/" + GetParam() + "/model"; }

  // Packed rows of several documents.
  BinaryRun train(const std::string& words) const {
    return run_snug(joined({"train", "data=" + path("data.jsonl"), "max_length=12",
                            "max_target_length=16", "max_segments=4", "threads=2",
                            "per_device_train_batch_size=2", "max_steps=4", "save_steps=2"},
                           words_of(words)));
  }

  double last_loss(const std::string& output) const {
    const std::string metrics = contents_of(folder_ / output / "metrics.jsonl");
    const size_t end = metrics.rfind('\n');
    const size_t first = metrics.rfind('\n', end - 1) + 1;
    return json::parse(metrics.substr(first, end - first))["loss"].get<double>();
  }

  std::vector<int> answer(const std::string& model, const std::string& words = "") const {
    const BinaryRun run = run_snug(joined(
        {"generate", "model=" + model, "ids=5 7 9 ", "--json", "max_new_tokens=6", "threads=2"},
        words_of(words)));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json::parse(run.out)["ids"].get<std::vector<int>>();
  }

  testing::TemporaryFolder folder_;
};

TEST_P(EncoderDecoders, LearnToAnswerAndAreSaved) {
  const BinaryRun run = train(
      "method=full compute_dtype=fp32 max_steps=150 save_steps=0 learning_rate=0.02 "
      "model=" +
      golden() + " output_dir=" + path("full"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LT(last_loss("full"), 0.5);
  EXPECT_EQ(answer(path("full/model"), "compute_dtype=fp32"), (std::vector<int>{6, 8, 10, 1}));
}

TEST_P(EncoderDecoders, AdaptersAreSavedAndResumed) {
  const std::string lora = "method=lora lora_r=2 lora_dropout=0.1 model=" + golden();
  const BinaryRun tuned = train(lora + " output_dir=" + path("tuned"));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const json config = json::parse(contents_of(folder_ / "tuned/adapter/adapter_config.json"));
  EXPECT_EQ(config["task_type"], "SEQ_2_SEQ_LM");
  const formats::SafetensorsFile adapter(path(std::string("tuned/") + kAdapterFile));
  for (const char* module :
       {"encoder.block.0.layer.0.SelfAttention.q", "decoder.block.0.layer.1.EncDecAttention.v",
        "decoder.block.0.layer.2.DenseReluDense.wo"})
    EXPECT_NE(adapter.find(fmt::format("base_model.model.{}.lora_A.weight", module)), nullptr)
        << module;

  std::filesystem::create_directories(folder_ / "again");
  const BinaryRun resumed = train(lora + " output_dir=" + path("again") +
                                  " resume_from_checkpoint=" + path("tuned/checkpoint-2"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(contents_of(folder_ / "again" / kAdapterFile),
            contents_of(folder_ / "tuned" / kAdapterFile));
  const std::string with_adapter = "adapter=" + path("tuned/adapter");
  answer(golden(), with_adapter);
  const BinaryRun scored = run_snug(
      {"score", "model=" + golden(), with_adapter, "ids=5 7 9", "answer_ids=6 8 10 1", "--json"});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_EQ(json::parse(scored.out)["logprobs"].size(), 4U);
}

// Of prompts of three tokens and answers of four: rows are so many times as long, and nothing is
// cut.
TEST_P(EncoderDecoders, LengthsAreChosenByTheData) {
  const BinaryRun run =
      run_snug({"train", "data=" + path("data.jsonl"), "model=" + golden(), "method=lora",
                "lora_r=2", "max_length=auto", "threads=2", "per_device_train_batch_size=auto",
                "max_steps=2", "gradient_accumulation_steps=4", "output_dir=" + path("auto")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "of prompts and ")) << run.err;
  EXPECT_TRUE(contains(run.err, "0 documents cut")) << run.err;
  const BinaryRun alone = run_snug({"train", "data=" + path("data.jsonl"), "model=" + golden(),
                                    "method=lora", "lora_r=2", "max_length=auto", "packing=false",
                                    "max_steps=1", "output_dir=" + path("alone")});
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_TRUE(contains(alone.err, "max_length=auto: 3 tokens of prompts and 4 of answers"))
      << alone.err;
  const BinaryRun resumed = run_snug(
      {"train", "data=" + path("data.jsonl"), "model=" + golden(), "method=lora", "lora_r=2",
       "max_length=auto", "packing=false", "max_steps=2", "save_steps=1",
       "resume_from_checkpoint=" + path("alone/checkpoint-1"), "output_dir=" + path("more")});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(contains(resumed.err, ", as the run began")) << resumed.err;
}

// A folder in 4 bits is the same base as the 16-bit one that is quantised while it is read, and
// holds wo, the embedding and the head in 16 bits.
TEST_P(EncoderDecoders, AreTunedIn4Bits) {
  const BinaryRun quantised =
      run_snug({"quantize", "model=" + golden(), "output_dir=" + path("nf4")});
  ASSERT_EQ(quantised.exit_code, 0) << quantised.err;
  const formats::SafetensorsFile stored(path("nf4/model.safetensors"));
  for (const char* whole : {"shared.weight", "encoder.block.0.layer.1.DenseReluDense.wo.weight"})
    EXPECT_EQ(stored.find(std::string(whole) + ".absmax"), nullptr) << whole;
  EXPECT_NE(stored.find("decoder.block.0.layer.1.EncDecAttention.k.weight.absmax"), nullptr);
  for (const auto& [model, output] : {std::pair{path("nf4"), "stored"}, {golden(), "made"}}) {
    const BinaryRun tuned =
        train("method=qlora lora_r=2 target_modules=q,v compute_dtype=fp32 model=" + model +
              " output_dir=" + path(output));
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncoderDecoders, ::testing::Values("t5", "t5_gated", "mt5"),
                         [](const auto& test) { return test.param; });

TEST(EncoderDecoderRefusals, NameWhatIsNotBuilt) {
  const testing::TemporaryFolder folder;
  folder.write("data.jsonl", counting());
  const std::string model = "model=tests/goldens/t5/model";
  const std::string data = "data=" + (folder / "data.jsonl").string();
  const std::string output = "output_dir=" + (folder / "out").string();
  struct Case {
    std::vector<std::string> words;
    const char* named;
  };
  for (const Case& wrong :
       {Case{{"train", model, data, output, "objective=dpo"}, "objective"},
        Case{{"train", model, data, output, "train_on_prompt=true"}, "train_on_prompt"},
        Case{{"train", model, data, output, "max_length=auto", "max_target_length=8"},
             "max_target_length"},
        Case{{"train", model, data, output, "compute_dtype=fp16"}, "fp16"},
        Case{{"train", model, data, output, "method=adapter"}, "adapter"},
        Case{{"generate", model, "ids=2 3", "compute_dtype=fp16"}, "fp16"},
        Case{{"score", model, "ids=1 2", "answer_ids=3", "fp16=true"}, "fp16"},
        Case{{"train", model, data, output, "data_format=messages"}, "data_format"},
        Case{{"train", "model=tests/goldens/gpt2/model", data, output, "max_target_length=8"},
             "max_target_length"},
        Case{{"score", model, "ids=1 2 3"}, "answer_ids"},
        Case{{"score", "model=tests/goldens/gpt2/model", "ids=1 2 3", "answer_ids=4"},
             "answer_ids"},
        Case{{"generate", model, "ids=2 3", "prompt_format=chat"}, "prompt_format"}}) {
    const BinaryRun run = run_snug(wrong.words);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(contains(run.err, wrong.named)) << run.err;
  }
}

}  // namespace
}  // namespace snug::cli
