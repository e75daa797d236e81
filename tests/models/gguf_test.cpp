// What a model is in GGUF: names, shapes and hyper-parameters are those that llama.cpp's own
// converter wrote for the models in tests/goldens; parts read what they say; what llama.cpp does
// not run is refused by name.
#include "models/gguf/architecture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "../base/temporary_folder.h"
#include "base/json.h"
#include "formats/gguf/gguf_file.h"

namespace snug::models {
namespace {

using formats::GgufFile;
using nlohmann::json;
using testing::contains;
using testing::user_error_of;

json config_of(const std::string& golden) {
  json config = base::read_json_file("tests/goldens/" + golden + "/model/config.json");
  if (golden == "mt5") config["tie_word_embeddings"] = false;  // as its files are
  return config;
}

GgufModel model_of(const json& config) {
  return gguf_model(parse_config(config.dump(), "config.json"), config);
}

class GgufArchitecture : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufArchitecture, HasTheTensorsOfTheConverter) {
  const GgufModel model = model_of(config_of(GetParam()));
  const GgufFile file(std::string("tests/goldens/gguf/converted/") + GetParam() + ".gguf");
  std::set<std::string> names;
  for (const GgufTensor& tensor : model.tensors) {
    names.insert(tensor.name);
    const auto* theirs = file.find(tensor.name);
    ASSERT_NE(theirs, nullptr) << tensor.name;
    EXPECT_EQ(tensor.shape, theirs->shape) << tensor.name;
  }
  EXPECT_EQ(names.size(), model.tensors.size());
  for (const auto& tensor : file.tensors()) EXPECT_TRUE(names.contains(tensor.name)) << tensor.name;
}

// Keys that the converter does not take from the model's config, where ours are the model's; and
// windows of architectures in which llama.cpp has none.
bool is_compared(std::string_view key) {
  if (key.starts_with("general.") || key.starts_with("tokenizer.")) return false;
  constexpr std::array<std::string_view, 8> kConstants{
      "bloom.context_length",          "falcon.context_length",    "phi2.attention.head_count_kv",
      "phi2.feed_forward_length",      "gpt2.feed_forward_length", "falcon.feed_forward_length",
      "phi3.attention.sliding_window", "bloom.feed_forward_length"};
  return std::ranges::find(kConstants, key) == kConstants.end();
}

TEST_P(GgufArchitecture, HasTheHyperParametersOfTheConverter) {
  const GgufModel model = model_of(config_of(GetParam()));
  const GgufFile file(std::string("tests/goldens/gguf/converted/") + GetParam() + ".gguf");
  for (const auto& [key, theirs] : file.metadata().pairs()) {
    if (!is_compared(key)) continue;
    const formats::MetadataValue* ours = model.hyper_parameters.find(key);
    ASSERT_NE(ours, nullptr) << key;
    EXPECT_TRUE(*ours == theirs) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, GgufArchitecture,
                         ::testing::Values("biases", "rope_llama3", "rope_yarn", "mixtral", "qwen2",
                                           "qwen3", "gemma2", "gemma3", "phi", "phi3_long", "gpt2",
                                           "gpt_neox", "bloom", "falcon_grouped", "olmo2",
                                           "stablelm", "mt5"),
                         [](const auto& golden) { return std::string(golden.param); });

TEST(GgufPart, GathersRowsOfRotaryPairs) {
  // Two heads of four rows of one element: rows 0 and 2, then 1 and 3, of each head.
  const GgufPart part{.source = "q", .sizes = {2, 2, 2, 1}, .steps = {4, 1, 2, 1}};
  const std::vector<float> source{0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<float> values(8);
  gather_slabs(part, 0, 2, source, 0, values);
  EXPECT_EQ(values, (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  // One head alone, from a buffer that begins with its rows.
  std::vector<float> second(4);
  gather_slabs(part, 1, 1, std::span(source).subspan(4), 4, second);
  EXPECT_EQ(second, (std::vector<float>{4, 6, 5, 7}));
}

TEST(GgufPart, ReadsATransposedMatrixInOneSlab) {
  const GgufPart part{.source = "w", .sizes = {3, 2}, .steps = {1, 3}};
  EXPECT_EQ(slabs_of(part).count, 1);
  EXPECT_EQ(slabs_of(part).reach, 6);
  const std::vector<float> source{0, 1, 2, 3, 4, 5};
  std::vector<float> values(6);
  gather_slabs(part, 0, 1, source, 0, values);
  EXPECT_EQ(values, (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST_P(GgufArchitecture, ScattersWhatItGathers) {
  for (const GgufTensor& tensor : model_of(config_of(GetParam())).tensors) {
    for (const GgufPart& part : tensor.parts) {
      int64_t last = part.first;
      for (size_t axis = 0; axis < part.sizes.size(); ++axis)
        last += (part.sizes[axis] - 1) * part.steps[axis];
      std::vector<float> source(static_cast<size_t>(last + 1));
      std::iota(source.begin(), source.end(), 1.0F);
      std::vector<float> values(static_cast<size_t>(part.elements()));
      gather_slabs(part, 0, slabs_of(part).count, source, 0, values);
      std::vector<float> back(source.size());
      scatter_part(part, values, back);
      for (const float value : values)
        ASSERT_EQ(back[static_cast<size_t>(value) - 1], value) << tensor.name;
    }
  }
}

TEST(GgufModelOf, ScalesQueriesThatLlamaCppWouldScaleOtherwise) {
  json config = config_of("gemma2");  // heads of 6, and query_pre_attn_scalar 10
  const auto factor_of = [](const GgufModel& model) {
    for (const GgufTensor& tensor : model.tensors)
      if (tensor.name == "blk.1.attn_q.weight") return tensor.factor;
    return 0.0F;
  };
  EXPECT_NEAR(factor_of(model_of(config)), std::sqrt(6.0 / 10.0), 1e-6);
  config["query_pre_attn_scalar"] = 6;
  EXPECT_EQ(factor_of(model_of(config)), 1.0F);
}

TEST(GgufModelOf, ScalesTheHeadOfT5InItsFinalNorm) {
  json config = config_of("t5");
  config["relative_attention_max_distance"] = 128;
  const GgufModel model = model_of(config);
  for (const GgufTensor& tensor : model.tensors) {
    if (tensor.name != "dec.output_norm.weight") continue;
    EXPECT_FLOAT_EQ(tensor.factor,
                    static_cast<float>(1.0 / std::sqrt(config["d_model"].get<double>())));
  }
}

TEST(GgufModelOf, WritesATiedHeadTwiceWhereLlamaCppWantsOne) {
  json config = config_of("stablelm");
  config["tie_word_embeddings"] = true;
  const GgufModel model = model_of(config);
  EXPECT_EQ(model.tensors.back().name, "output.weight");
  EXPECT_EQ(model.tensors.back().parts.front().source, "model.embed_tokens.weight");
}

std::string refusal(const std::string& golden, const json& changes = json::object()) {
  json config = config_of(golden);
  config.update(changes);
  return user_error_of([&] { model_of(config); });
}

TEST(GgufModelOf, RefusesWhatLlamaCppDoesNotRun) {
  EXPECT_TRUE(contains(refusal("codet5p"), "family \"codet5p\""));
  EXPECT_TRUE(contains(refusal("falcon_rw"), "bias in config.json is true"));
  EXPECT_TRUE(contains(refusal("falcon_rw", {{"bias", false}}), "alibi in config.json is true"));
  EXPECT_TRUE(contains(refusal("gpt_oss"), "swiglu_limit and swiglu_alpha"));
  EXPECT_TRUE(contains(refusal("t5"), "relative_attention_max_distance in config.json is 20"));
  EXPECT_TRUE(contains(refusal("qwen3_moe"), "mlp_only_layers or decoder_sparse_step"));
  EXPECT_TRUE(contains(refusal("gemma", {{"tie_word_embeddings", false}}), "tie_word_embeddings"));
  EXPECT_TRUE(contains(refusal("gemma2", {{"attn_logit_softcapping", nullptr}}), "is null"));
  EXPECT_TRUE(contains(refusal("qwen3", {{"attention_bias", true}}), "attention_bias"));
  EXPECT_TRUE(contains(refusal("qwen2_moe"), "mlp_only_layers"));
  EXPECT_TRUE(contains(refusal("olmoe"), "num_key_value_heads in config.json is not"));
  EXPECT_TRUE(contains(refusal("olmoe", {{"norm_topk_prob", true}}), "does not divide"));
  EXPECT_TRUE(contains(refusal("glm4_moe"), "n_group in config.json is 4"));
  EXPECT_TRUE(contains(refusal("qwen3_5"), "states of llama.cpp's qwen35 are square"));
  EXPECT_TRUE(contains(refusal("ernie4_5"), "use_bias in config.json is true"));
  EXPECT_TRUE(contains(refusal("seed_oss"), "attention_out_bias in config.json is true"));
  EXPECT_TRUE(contains(refusal("seed_oss", {{"attention_out_bias", false}}), "mlp_bias"));
  EXPECT_TRUE(contains(refusal("exaone4"), "has windows with 64 layers"));
  EXPECT_TRUE(contains(refusal("olmo3"), "two values of rope_theta"));
  EXPECT_TRUE(contains(refusal("smollm3"), "says that layer 1 does not rotate"));
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 32}};
  EXPECT_TRUE(contains(refusal("qwen3", {{"rope_scaling", llama3}}), "rope_scaling"));
}

TEST(GgufModelOf, TellsWhatLlamaCppComputesOtherwise) {
  EXPECT_TRUE(contains(model_of(config_of("mistral")).differences.at(0), "more than 7 tokens"));
  EXPECT_TRUE(contains(model_of(config_of("rope_yarn")).differences.at(0), "beta_fast"));
  EXPECT_TRUE(contains(model_of(config_of("gpt_neox")).differences.at(0), "tanh form"));
  EXPECT_TRUE(model_of(config_of("basic")).differences.empty());
}

}  // namespace
}  // namespace snug::models
