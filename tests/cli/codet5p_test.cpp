// CodeT5+ through the binary: a tiny one is trained in full and saved, adapted, resumed, quantised,
// asked, scored and examined, from a folder as published.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "binary_run.h"
#include "formats/folder/safetensors_file.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

using nlohmann::json;

constexpr const char* kGolden = "tests/goldens/codet5p/model";
constexpr const char* kAdapterFile = "adapter/adapter_model.safetensors";

class CodeT5p : public ::testing::Test {
 protected:
  CodeT5p() {
    write_tiny_shape(folder_, "shape");
    json config = json::parse(base::read_text_file(std::string(kGolden) + "/config.json", 1 << 20));
    for (const char* part : {"encoder", "decoder"}) {
      config[part]["vocab_size"] = 258;
      config[part]["eos_token_id"] = config[part]["pad_token_id"] = 257;
    }
    folder_.write("shape/config.json", config.dump());
    std::string texts;
    for (const char* letter : {"a", "b", "c", "d"})
      texts += json{{"input", fmt::format("Say {}.", letter)}, {"target", letter}}.dump() + "\n";
    folder_.write("texts.jsonl", texts);
    std::string tokens;
    for (int first = 2; first < 12; ++first)
      tokens += json{{"input_ids", {first, first + 2, first + 4}},
                     {"labels", {-100, -100, -100, first + 1, first + 3, 18}}}
                    .dump() +
                "\n";
    folder_.write("tokens.jsonl", tokens);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  BinaryRun train(const std::string& words) const {
    return run_snug(joined({"train", "max_length=16", "max_target_length=24", "threads=2",
                            "per_device_train_batch_size=2", "max_steps=4", "save_steps=2"},
                           words_of(words)));
  }

  std::vector<double> losses(const std::string& output) const {
    std::istringstream lines(contents_of(folder_ / output / "metrics.jsonl"));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);) {
      const json entry = json::parse(line);
      if (entry.contains("loss")) found.push_back(entry["loss"].get<double>());
    }
    return found;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(CodeT5p, LearnsToAnswerAndIsExamined) {
  const BinaryRun full = train(
      "method=full init=random compute_dtype=fp32 max_steps=120 save_steps=0 "
      "learning_rate=0.01 model=" +
      path("shape") + " data=" + path("texts.jsonl") + " output_dir=" + path("base"));
  ASSERT_EQ(full.exit_code, 0) << full.err;
  EXPECT_LT(losses("base").back(), 0.6);
  const std::string model = "model=" + path("base/model");
  const BinaryRun examined = run_snug({"evaluate", model, "data=" + path("texts.jsonl"),
                                       "compute_dtype=fp32", "max_new_tokens=4", "--json"});
  ASSERT_EQ(examined.exit_code, 0) << examined.err;
  EXPECT_EQ(json::parse(examined.out)["exact_match"], 1.0) << examined.out;
  const BinaryRun scored =
      run_snug({"score", model, "prompt=Say b.", "answer=b", "compute_dtype=fp32", "--json"});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const json scores = json::parse(scored.out);
  EXPECT_EQ(scores["logprobs"].size(), 2U);  // the letter and the end
  EXPECT_LT(scores["loss"].get<double>(), 0.6);
}

// Documents of a row see nothing of each other, in either stream.
TEST_F(CodeT5p, PackedRowsAreTheirDocuments) {
  const std::string words = std::string("method=full compute_dtype=fp32 shuffle=false ") +
                            "save_steps=0 data=" + path("tokens.jsonl") + " model=" + kGolden;
  const BinaryRun packed = train(words +
                                 " per_device_train_batch_size=1 max_segments=4 "
                                 "max_steps=1 output_dir=" +
                                 path("packed"));
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const BinaryRun alone = train(words +
                                " per_device_train_batch_size=4 packing=false "
                                "max_steps=1 output_dir=" +
                                path("alone"));
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_NEAR(losses("packed").front(), losses("alone").front(), 1e-5);
}

TEST_F(CodeT5p, AdaptersHavePeftsNamesAndAreResumed) {
  const std::string lora = std::string("method=lora lora_r=2 lora_dropout=0.1 model=") + kGolden +
                           " data=" + path("tokens.jsonl");
  const BinaryRun tuned = train(lora + " output_dir=" + path("tuned"));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const json config = json::parse(contents_of(folder_ / "tuned/adapter/adapter_config.json"));
  EXPECT_EQ(config["task_type"], "SEQ_2_SEQ_LM");
  // The same as PEFT's of all linears.
  const formats::SafetensorsFile adapter(path(std::string("tuned/") + kAdapterFile));
  const formats::SafetensorsFile pefts(
      "tests/goldens/lora_codet5p/adapter/adapter_model.safetensors");
  EXPECT_EQ(adapter.tensors().size(), pefts.tensors().size());
  for (const auto& tensor : pefts.tensors())
    EXPECT_NE(adapter.find(tensor.name), nullptr) << tensor.name;

  std::filesystem::create_directories(folder_ / "again");
  const BinaryRun resumed = train(lora + " output_dir=" + path("again") +
                                  " resume_from_checkpoint=" + path("tuned/checkpoint-2"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(contents_of(folder_ / "again" / kAdapterFile),
            contents_of(folder_ / "tuned" / kAdapterFile));
  const BinaryRun generated =
      run_snug({"generate", std::string("model=") + kGolden, "adapter=" + path("tuned/adapter"),
                "ids=5 7 9", "max_new_tokens=5", "--json"});
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
}

// What is saved without a step that changes it is the folder that was read, bit for bit; masks that
// are no weights are left out.
TEST_F(CodeT5p, WeightsAreSavedAsTheyWereRead) {
  const BinaryRun run = train(std::string("method=full compute_dtype=fp32 learning_rate=0 ") +
                              "weight_decay=0 save_steps=0 max_steps=1 model=" + kGolden +
                              " data=" + path("tokens.jsonl") + " output_dir=" + path("full"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const formats::SafetensorsFile read(std::string(kGolden) + "/model.safetensors");
  const formats::SafetensorsFile saved(path("full/model/model.safetensors"));
  int compared = 0;
  for (const auto& tensor : read.tensors()) {
    if (tensor.name.ends_with("causal_mask")) continue;
    const formats::TensorInfo* again = saved.find(tensor.name);
    ASSERT_NE(again, nullptr) << tensor.name;
    std::vector<char> before(static_cast<size_t>(tensor.bytes()));
    std::vector<char> after(static_cast<size_t>(again->bytes()));
    read.read(tensor, before.data());
    saved.read(*again, after.data());
    EXPECT_EQ(before, after) << tensor.name;
    ++compared;
  }
  EXPECT_EQ(saved.tensors().size(), static_cast<size_t>(compared));
}

TEST_F(CodeT5p, RefusesWhatHasNoPositions) {
  const BinaryRun long_rows = train(std::string("max_target_length=100 model=") + kGolden +
                                    " data=" + path("tokens.jsonl") + " output_dir=" + path("out"));
  EXPECT_EQ(long_rows.exit_code, 2);
  EXPECT_TRUE(testing::contains(long_rows.err, "max_target_length")) << long_rows.err;
  // A prompt that leaves the decoder no room for its answer.
  const BinaryRun short_rows =
      train(std::string("max_target_length=3 model=") + kGolden + " data=" + path("tokens.jsonl") +
            " output_dir=" + path("out"));
  EXPECT_EQ(short_rows.exit_code, 2);
  EXPECT_TRUE(testing::contains(short_rows.err, "set max_target_length=")) << short_rows.err;
  std::string prompt = "ids=2";
  std::string answer = "answer_ids=3";
  for (int i = 0; i < 50; ++i) prompt += " 2", answer += " 3";
  const BinaryRun scored = run_snug({"score", std::string("model=") + kGolden, prompt, answer});
  EXPECT_EQ(scored.exit_code, 2);
  EXPECT_TRUE(testing::contains(scored.err, "96 positions")) << scored.err;
}

// bitsandbytes leaves embeddings and the head alone.
TEST_F(CodeT5p, IsTunedIn4Bits) {
  const BinaryRun quantised =
      run_snug({"quantize", std::string("model=") + kGolden, "output_dir=" + path("nf4")});
  ASSERT_EQ(quantised.exit_code, 0) << quantised.err;
  const formats::SafetensorsFile stored(path("nf4/model.safetensors"));
  for (const char* whole : {"encoder.wte", "decoder.transformer.wte", "decoder.lm_head"})
    EXPECT_EQ(stored.find(std::string(whole) + ".weight.absmax"), nullptr) << whole;
  for (const char* linear :
       {"enc_to_dec_proj", "encoder.h.0.attn.qkv_proj",
        "decoder.transformer.h.1.crossattention.q_attn",
        "decoder.transformer.h.1.crossattention.qkv_proj", "decoder.transformer.h.0.mlp.fc_in"})
    EXPECT_NE(stored.find(std::string(linear) + ".weight.absmax"), nullptr) << linear;
  for (const auto& [model, output] :
       {std::pair{path("nf4"), "stored"}, {std::string(kGolden), "made"}}) {
    const BinaryRun tuned = train("method=qlora lora_r=2 compute_dtype=fp32 model=" + model +
                                  " data=" + path("tokens.jsonl") + " output_dir=" + path(output));
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  }
}

}  // namespace
}  // namespace snug::cli
