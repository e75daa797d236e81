// `snug merge` of the built binary in the memory that it says.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "binary_run.h"
#include "formats/folder/safetensors_writer.h"

namespace snug::cli {
namespace {

using base::DType;
using formats::TensorSpec;
using nlohmann::json;
using testing::TemporaryFolder;

constexpr int64_t kVocabulary = 65536;
constexpr int64_t kHidden = 256;

void write_constants(const std::filesystem::path& file, const std::vector<TensorSpec>& specs) {
  formats::SafetensorsWriter writer(file, specs);
  for (const TensorSpec& spec : specs) {
    const std::vector<float> values(static_cast<size_t>(spec.bytes()) / sizeof(float), 0.5F);
    writer.write(spec.name, values.data(), spec.bytes());
  }
  writer.finish();
}

// A table of 64 MiB, tied to the head, and a layer; its adapter changes both.
void write_wide_model(const TemporaryFolder& folder) {
  folder.write("model/config.json", json({{"model_type", "llama"},
                                          {"hidden_size", kHidden},
                                          {"intermediate_size", 8},
                                          {"num_hidden_layers", 1},
                                          {"num_attention_heads", 4},
                                          {"vocab_size", kVocabulary},
                                          {"rms_norm_eps", 1e-6},
                                          {"max_position_embeddings", 64},
                                          {"hidden_act", "silu"},
                                          {"tie_word_embeddings", true}})
                                        .dump());
  const std::string layer = "model.layers.0.";
  std::vector<TensorSpec> specs{{"model.embed_tokens.weight", DType::f32, {kVocabulary, kHidden}},
                                {"model.norm.weight", DType::f32, {kHidden}},
                                {layer + "input_layernorm.weight", DType::f32, {kHidden}},
                                {layer + "post_attention_layernorm.weight", DType::f32, {kHidden}},
                                {layer + "mlp.gate_proj.weight", DType::f32, {8, kHidden}},
                                {layer + "mlp.up_proj.weight", DType::f32, {8, kHidden}},
                                {layer + "mlp.down_proj.weight", DType::f32, {kHidden, 8}}};
  for (const char* name : {"q", "k", "v", "o"})
    specs.push_back(
        {fmt::format("{}self_attn.{}_proj.weight", layer, name), DType::f32, {kHidden, kHidden}});
  write_constants(folder / "model/model.safetensors", specs);
  folder.write("adapter/adapter_config.json", json({{"peft_type", "LORA"},
                                                    {"r", 4},
                                                    {"lora_alpha", 8},
                                                    {"target_modules", {"embed_tokens", "q_proj"}}})
                                                  .dump());
  const std::string start = "base_model.model.model.";
  write_constants(folder / "adapter/adapter_model.safetensors",
                  {{start + "embed_tokens.lora_embedding_A", DType::f32, {4, kVocabulary}},
                   {start + "embed_tokens.lora_embedding_B", DType::f32, {kHidden, 4}},
                   {start + "layers.0.self_attn.q_proj.lora_A.weight", DType::f32, {4, kHidden}},
                   {start + "layers.0.self_attn.q_proj.lora_B.weight", DType::f32, {kHidden, 4}}});
}

TEST(Merge, KeepsToTheMemoryThatItSays) {
  const TemporaryFolder folder;
  write_wide_model(folder);
  const BinaryRun run = run_snug(
      {"merge", "model=" + (folder / "model").string(), "adapter=" + (folder / "adapter").string(),
       "output_dir=" + (folder / "out").string(), "dtype=bf16", "drift_tokens=0", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto said = json::parse(run.out);
  EXPECT_LE(said["measured"]["result_bytes"], said["planned"]["result_bytes"]);
  const int64_t planned = said["planned"]["buffer_bytes"].get<int64_t>() +
                          said["planned"]["outside_bytes"].get<int64_t>();
  EXPECT_LE(said["measured"]["resident_peak_bytes"], planned + (4 << 20));
  EXPECT_LT(planned, int64_t{64} << 20) << "the table would fill this";
  const auto config = json::parse(contents_of(folder / "out/config.json"));
  EXPECT_EQ(config["tie_word_embeddings"], false) << "the adapter is on the embedding alone";
}

}  // namespace
}  // namespace snug::cli
