// config.json in both of transformers' forms, and everything in it that is refused.
#include "models/config/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../train/golden_models.h"
#include "base/error.h"
#include "base/json.h"
#include "base/temporary_folder.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/quantization/quant_state.h"
#include "models/config/computed_tensors.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "models/weights.h"
#include "program/text/text.h"

namespace snug::models {
namespace {

using testing::contains;

constexpr const char* kSmall =
    R"("model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
       "intermediate_size": 48, "vocab_size": 100)";

ModelConfig parse(const std::string& more) {
  return parse_config(fmt::format("{{{}{}}}", kSmall, more), "config.json");
}

// The small shape as another family's config.json.
std::string of_family(const char* model_type, const std::string& more) {
  std::string text = fmt::format("{{{}{}}}", kSmall, more);
  return text.replace(text.find("llama"), 5, model_type);
}

std::string error_of(const std::string& text) {
  try {
    parse_config(text, "config.json");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

// As in transformers, whose default of Qwen3.5 is for an absent key alone.
TEST(Config, NullShareOfAHeadRotatesWholeHeads) {
  const auto share = [](const char* more) {
    return parse_config(of_family("qwen3_5_text", more), "config.json").partial_rotary_factor;
  };
  EXPECT_EQ(share(""), 0.25);
  EXPECT_EQ(share(R"(, "partial_rotary_factor": null)"), 1.0);
}

TEST(Config, DefaultsAreHuggingFaces) {
  const ModelConfig config = parse("");
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_FLOAT_EQ(config.norm_epsilon, 1e-6F);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_FLOAT_EQ(config.initializer_range, 0.02F);
}

TEST(Config, BothFormsOfRopeScalingAreTheSame) {
  const auto old_form = parse(
      R"(, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
         "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32})");
  const auto new_form = parse(
      R"(, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0,
         "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32})");
  EXPECT_EQ(inverse_frequencies(old_form), inverse_frequencies(new_form));
  EXPECT_NE(inverse_frequencies(old_form),
            inverse_frequencies(parse(", \"rope_theta\": 500000.0")));
}

// The program that computes the logits of a row, with every attribute of its operations.
std::string network_of(const ModelConfig& config) {
  return program::to_text(forward(stack_of(config), {.program = program::ProgramName::prefill,
                                                     .tokens = 3,
                                                     .segments = 1,
                                                     .head = Head::logits,
                                                     .outputs = 1}));
}

std::vector<std::pair<std::string, std::vector<float>>> tables_of(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::vector<float>>> tables;
  for (const ComputedTensor& tensor : computed_tensors(config))
    tables.emplace_back(tensor.name, tensor.values);
  return tables;
}

TEST(Config, GoldenFoldersParseInBothForms) {
  for (const char* name : test::kGoldenModels) {
    const auto read = [&](const char* file) {
      std::ifstream stream(fmt::format("tests/goldens/{}/model/{}", name, file));
      std::stringstream text;
      text << stream.rdbuf();
      return parse_config(text.str(), file);
    };
    const ModelConfig five = read("config.json");
    const ModelConfig four = read("config_v4.json");
    EXPECT_EQ(five.head_dim, four.head_dim) << name;
    EXPECT_EQ(five.windows, four.windows) << name;
    EXPECT_EQ(parameter_count(five), parameter_count(four)) << name;
    EXPECT_EQ(network_of(five), network_of(four)) << name;
    const ModelConfig saved = parse_config(describe(five).dump(), "saved");
    EXPECT_EQ(network_of(saved), network_of(five)) << name;
    EXPECT_EQ(tables_of(four), tables_of(five)) << name;
    EXPECT_EQ(tables_of(saved), tables_of(five)) << name;
  }
}

// Every layer of SmolLM3 may be one that does not rotate; then no program reads frequencies.
TEST(Config, AModelWithoutRotatedLayersHasNoFrequencies) {
  EXPECT_EQ(
      tables_of(parse_config(of_family("smollm3", R"(, "no_rope_layers": [0, 1])"), "")).size(), 1);
  EXPECT_TRUE(
      tables_of(parse_config(of_family("smollm3", R"(, "no_rope_layers": [0, 0])"), "")).empty());
}

TEST(Config, RefusesWhatItDoesNotDo) {
  struct Case {
    const char* more;
    const char* named;
  };
  for (const Case& wrong :
       {Case{R"(, "hidden_act": "gelu")", "hidden_act"},
        Case{R"(, "num_key_value_heads": 3)", "num_key_value_heads"},
        Case{R"(, "head_dim": 7)", "head_dim"},
        Case{R"(, "attention_dropout": 0.1)", "attention_dropout"},
        Case{R"(, "rope_scaling": {"rope_type": "longrope", "factor": 2.0})",
             "'rope_scaling.rope_type'"},
        Case{R"(, "rope_scaling": {"type": "su", "factor": 2.0})", "'rope_scaling.type'"},
        Case{R"(, "rope_scaling": {"type": "dynamic"})", "'rope_scaling.factor'"},
        Case{R"(, "rope_scaling": {"type": "dynamic", "factor": 0.5})", "'rope_scaling.factor'"},
        Case{R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2.0,
             "original_max_position_embeddings": 32, "beta_fast": 0.5})",
             "beta_fast"},
        Case{R"(, "original_max_position_embeddings": 16, "rope_scaling": {"rope_type": "yarn",
             "factor": 2.0, "original_max_position_embeddings": 32})",
             "original_max_position_embeddings"},
        Case{R"(, "rope_scaling": {"type": "linear", "factor": 0.5})", "factor"},
        Case{R"(, "rope_theta": 0)", "rope_theta"}, Case{R"(, "rope_theta": -1)", "rope_theta"},
        Case{R"(, "rms_norm_eps": -1e-6)", "rms_norm_eps"},
        Case{R"(, "quantization_config": {"quant_method": "gptq"})", "quantization_config"}}) {
    const std::string error = error_of(fmt::format("{{{}{}}}", kSmall, wrong.more));
    EXPECT_NE(error.find(wrong.named), std::string::npos) << error;
    EXPECT_NE(error.find("config.json"), std::string::npos) << error;
  }
}

using Windows = std::vector<int64_t>;

TEST(Config, MistralsWindowIsTransformers) {
  const auto windows = [](const std::string& more) {
    return parse_config(of_family("mistral", R"(, "num_key_value_heads": 2)" + more), "c").windows;
  };
  EXPECT_EQ(windows(R"(, "sliding_window": 7)"), Windows({7, 7}));
  EXPECT_EQ(windows(""), Windows({4096, 4096}));
  EXPECT_EQ(windows(R"(, "sliding_window": null)"), Windows({0, 0}));
}

TEST(Config, QwensWindowsAreALayersOwn) {
  const auto windows = [](const std::string& more) {
    return parse_config(of_family("qwen2", R"(, "num_key_value_heads": 2)" + more), "c").windows;
  };
  EXPECT_EQ(windows(R"(, "sliding_window": 7, "max_window_layers": 1)"), Windows({0, 0}));
  EXPECT_EQ(windows(R"(, "use_sliding_window": true, "sliding_window": 7, "max_window_layers": 1)"),
            Windows({0, 7}));
  EXPECT_EQ(windows(R"(, "use_sliding_window": true, "sliding_window": 7,
                       "layer_types": ["sliding_attention", "full_attention"])"),
            Windows({7, 0}));
}

TEST(Config, Gemma2sWindowsAlternateOrAreALayersOwn) {
  const auto windows = [](const std::string& more) {
    const ModelConfig config = parse_config(of_family("gemma2", more), "c");
    EXPECT_EQ(parse_config(describe(config).dump(), "saved").windows, config.windows);
    return config.windows;
  };
  EXPECT_EQ(windows(""), Windows({4096, 0}));
  EXPECT_EQ(windows(R"(, "sliding_window": 7)"), Windows({7, 0}));
  EXPECT_EQ(windows(R"(, "sliding_window": null)"), Windows({0, 0}));
  EXPECT_EQ(windows(R"(, "sliding_window": 7,
                       "layer_types": ["full_attention", "sliding_attention"])"),
            Windows({0, 7}));
}

// Published files of Phi-2 and GPT-2 ask for dropout; GPT-2's class does where a file does not.
TEST(Config, ReadsTheDropoutOfFamiliesThatHaveIt) {
  const std::string heads = R"(, "num_key_value_heads": 2)";
  EXPECT_EQ(parse_config(of_family("phi", heads), "f").dropout, 0);
  EXPECT_EQ(parse_config(of_family("phi", heads + R"(, "resid_pdrop": 0.1)"), "f").dropout, 0.1);
  EXPECT_EQ(parse_config(of_family("gpt2", ""), "f").dropout, 0.1);
}

TEST(Config, RefusesWhatAFamilyDoesNotDo) {
  struct Case {
    const char* family;
    const char* more;
    const char* named;
  };
  for (const Case& wrong :
       {Case{"mistral", R"(, "layer_types": ["full_attention"])", "layer_types"},
        Case{"mistral", R"(, "sliding_window": 0)", "sliding_window"},
        Case{"qwen2", R"(, "layer_types": ["full_attention"])", "layer_types"},
        Case{"qwen2", R"(, "layer_types": ["sliding_attention", "full_attention"])",
             "use_sliding_window"},
        Case{"qwen2", R"(, "use_sliding_window": true, "layer_types": ["linear_attention", "x"])",
             "linear_attention"},
        Case{"qwen2", R"(, "use_sliding_window": true, "max_window_layers": -1)",
             "max_window_layers"},
        Case{"qwen2", R"(, "rope_scaling": {"type": "yarn", "factor": 4.0})",
             "original_max_position_embeddings"},
        Case{"llama", R"(, "partial_rotary_factor": 0.5)", "partial_rotary_factor"},
        Case{"gemma2", R"(, "attn_logit_softcapping": -1)", "attn_logit_softcapping"},
        Case{"gemma2", R"(, "layer_types": ["full_attention"])", "layer_types"},
        Case{"gemma", R"(, "hidden_act": "silu")", "hidden_act"},
        Case{"gemma", R"(, "hidden_act": "gelu", "hidden_activation": "gelu")",
             "hidden_activation"},
        Case{"gemma", R"(, "use_bidirectional_attention": true)", "use_bidirectional_attention"},
        Case{"gemma3_text", R"(, "attn_logit_softcapping": 50)", "attn_logit_softcapping"},
        Case{"gemma3_text", R"(, "sliding_window": null)", "sliding_window"},
        Case{"gemma3_text", R"(, "rope_local_base_freq": 0)", "rope_local_base_freq"},
        Case{"gemma3_text", R"(, "rope_parameters": {"rope_type": "default"})", "full_attention"},
        Case{"gemma3_text", R"(, "rope_parameters": {"full_attention": {"rope_theta": 1000},
             "sliding_attention": {"rope_type": "linear", "factor": 2}})",
             "sliding_attention"},
        Case{"stablelm", R"(, "hidden_dropout": 0.1)", "hidden_dropout"},
        Case{"stablelm", R"(, "partial_rotary_factor": 0)", "partial_rotary_factor"},
        Case{"stablelm", R"(, "partial_rotary_factor": 0.4)", "rotates 3 of the 8"},
        Case{"granite", R"(, "residual_multiplier": 0)", "residual_multiplier"},
        Case{"granite", R"(, "logits_scaling": -8)", "logits_scaling"},
        Case{"smollm3", R"(, "no_rope_layers": [1])", "no_rope_layers"},
        Case{"olmo3", R"(, "sliding_window": null)", "sliding_window"},
        Case{"cohere2", R"(, "head_dim": 12)", "head_dim"},
        Case{"cohere2", R"(, "sliding_window": null)", "sliding_window"},
        Case{"exaone4", R"(, "sliding_window_pattern": "LLLG")", "sliding_window_pattern"},
        Case{"hunyuan_v1_dense",
             R"(, "rope_scaling": {"type": "dynamic", "factor": 1.0, "alpha": -2.0})", "alpha"},
        Case{"ministral3", R"(, "rope_scaling": {"rope_type": "default",
             "llama_4_scaling_beta": 0.1})",
             "original_max_position_embeddings"},
        Case{"gemma4_text", R"(, "enable_moe_block": true)", "num_experts"},
        Case{"gemma4_text", R"(, "enable_moe_block": true, "num_experts": 4, "top_k_experts": 5,
             "moe_intermediate_size": 8)",
             "top_k_experts"},
        Case{"gemma4_unified_text", R"(, "enable_moe_block": true)", "enable_moe_block"},
        Case{"gemma4_text", R"(, "use_bidirectional_attention": "all")",
             "use_bidirectional_attention"},
        Case{"gemma4_text", R"(, "sliding_window": null)", "sliding_window"},
        Case{"gemma4_text", R"(, "global_head_dim": 7)", "global_head_dim"},
        Case{"gemma4_text", R"(, "attention_k_eq_v": true, "num_global_key_value_heads": 3)",
             "num_global_key_value_heads"},
        Case{"gemma4_text", R"(, "per_layer_config": {"0": {"head_dim": 4}})", "layer 0"},
        Case{"gemma4_text", R"(, "per_layer_config": {"1": {"num_key_value_heads": 1}})",
             "attention_k_eq_v"},
        Case{"gemma4_text", R"(, "per_layer_config": {"1": {"sliding_window": 2}})",
             "sliding_window"},
        Case{"gemma4_text", R"(, "num_kv_shared_layers": 2)", "num_kv_shared_layers"},
        Case{"gemma4_text", R"(, "vocab_size_per_layer_input": 8)", "vocab_size_per_layer_input"},
        Case{"gemma4_text", R"(, "rope_parameters": {"full_attention": {"rope_type": "yarn"},
             "sliding_attention": {}})",
             "yarn"},
        Case{"gemma4_text", R"(, "rope_parameters": {"full_attention": {}})", "sliding_attention"},
        Case{"gemma4_unified_text", R"(, "hidden_size_per_layer_input": 4)",
             "hidden_size_per_layer_input"},
        Case{"qwen3_5_text", R"(, "attn_output_gate": false)", "attn_output_gate"},
        Case{"qwen3_5_text", R"(, "linear_num_value_heads": 24)", "linear_num_value_heads"},
        Case{"qwen3_5_text", R"(, "linear_conv_kernel_dim": 9)", "linear_conv_kernel_dim"},
        Case{"qwen3_5_text", R"(, "layer_types": ["linear_attention"])", "layer_types"},
        Case{"apertus", R"(, "hidden_act": "silu")", "this family has only xielu"},
        Case{"apertus", R"(, "hidden_act": "xielu", "qk_norm": false)", "qk_norm"},
        Case{"granitemoehybrid", "", "layer_types"},
        Case{"granitemoehybrid", R"(, "layer_types": ["mamba", "attention"])", "layers of Mamba"},
        Case{"granitemoehybrid",
             R"(, "layer_types": ["attention", "attention"], "num_local_experts": 62)",
             "num_local_experts"},
        Case{"lfm2", R"(, "conv_bias": true)", "conv_bias"},
        Case{"lfm2", R"(, "layer_types": ["conv"])", "layer_types"},
        Case{"lfm2", R"(, "conv_L_cache": 9)", "conv_L_cache"},
        Case{"lfm2", R"(, "block_multiple_of": 1073741824)", "block_multiple_of"},
        Case{"lfm2", R"(, "block_ff_dim": 1, "block_ffn_dim_multiplier": null)",
             "an mlp of 0 elements"},
        Case{"lfm2", R"(, "block_ffn_dim_multiplier": 1e9)", "block_ffn_dim_multiplier"},
        Case{"phi", R"(, "hidden_act": "gelu")", "gelu_new"},
        Case{"phi", R"(, "qk_layernorm": true)", "qk_layernorm"},
        Case{"phi", R"(, "resid_pdrop": 1)", "resid_pdrop"},
        Case{"phi", R"(, "resid_pdrop": -0.1)", "resid_pdrop"},
        Case{"phi", R"(, "attention_dropout": 0.1)", "attention_dropout"},
        Case{"gemma2", R"(, "hidden_activation": "relu")",
             "this family has only gelu_pytorch_tanh"},
        Case{"gemma2", R"(, "attn_logit_softcapping": 1e300)", "attn_logit_softcapping"},
        Case{"gemma2", R"(, "attn_logit_softcapping": 1e-300)", "attn_logit_softcapping"},
        Case{"gemma2", R"(, "rms_norm_eps": 1e300)", "rms_norm_eps"},
        Case{"gpt2", R"(, "attn_pdrop": -3)", "attn_pdrop"},
        Case{"phi", R"(, "partial_rotary_factor": 0.1)", "rotates 0 of the 8"},
        Case{"gpt_neox", R"(, "num_key_value_heads": 2)", "num_key_value_heads"},
        Case{"gpt_neox", R"(, "hidden_act": "relu")", "gelu_fast"},
        Case{"gpt_neox", R"(, "rotary_pct": 1.5)", "rotary_pct"},
        Case{"gpt_neox", R"(, "rotary_emb_base": 0)", "rotary_emb_base"},
        Case{"gpt_neox", R"(, "hidden_dropout": 0.1)", "hidden_dropout"},
        Case{"mistral", R"(, "num_local_experts": 8)", "experts"},
        Case{"gpt2", R"(, "scale_attn_by_inverse_layer_idx": true)", "inverse_layer_idx"},
        Case{"gpt2", R"(, "reorder_and_upcast_attn": true)", "reorder_and_upcast_attn"},
        Case{"gpt2", R"(, "scale_attn_weights": false)", "scale_attn_weights"},
        Case{"gpt2", R"(, "add_cross_attention": true)", "add_cross_attention"},
        Case{"gpt2", R"(, "activation_function": "relu")", "gelu_new"},
        Case{"bloom", R"(, "apply_residual_connection_post_layernorm": true)", "post_layernorm"},
        Case{"bloom", R"(, "hidden_dropout": 0.1)", "hidden_dropout"},
        Case{"falcon", R"(, "new_decoder_architecture": true, "num_kv_heads": 3)", "num_kv_heads"},
        Case{"falcon", R"(, "new_decoder_architecture": true, "parallel_attn": false)",
             "parallel_attn"},
        Case{"falcon", R"(, "num_ln_in_parallel_attn": 2)", "num_ln_in_parallel_attn"},
        Case{"falcon", R"(, "multi_query": false, "num_kv_heads": 2)", "num_kv_heads"},
        Case{"falcon", R"(, "activation": "relu")", "activation"}}) {
    const bool has_key =
        std::string_view("gpt2 bloom falcon").find(wrong.family) != std::string_view::npos;
    const std::string heads = has_key ? "" : R"(, "num_key_value_heads": 2)";
    const std::string error = error_of(of_family(wrong.family, heads + wrong.more));
    EXPECT_NE(error.find(wrong.named), std::string::npos) << error;
    EXPECT_NE(error.find("config.json"), std::string::npos) << error;
  }
}

TEST(Config, NamesWhatIsMissingOrImpossible) {
  EXPECT_NE(error_of("{}").find("model_type"), std::string::npos);
  EXPECT_NE(error_of(R"({"model_type": "rwkv"})").find("rwkv"), std::string::npos);
  EXPECT_NE(error_of(R"({"model_type": "llama"})").find("hidden_size"), std::string::npos);
  EXPECT_NE(error_of(R"({"model_type": "llama", "hidden_size": -4})").find("-4"),
            std::string::npos);
  EXPECT_NE(error_of("{\n\"model_type\": llama}").find("config.json:2"), std::string::npos);
}

TEST(Config, SizesAreBounded) {
  EXPECT_EQ(parse(R"(, "max_position_embeddings": 1073741824)").max_position, 1 << 30);
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "head_dim", "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    auto document = base::parse_json(fmt::format("{{{}}}", kSmall), "c");
    document[key] = int64_t{1'000'000'000'000};
    const std::string error = error_of(document.dump());
    EXPECT_TRUE(
        contains(error, fmt::format("config.json: '{}' is 1000000000000; snug takes", key)));
  }
}

TEST(FindModel, NamesTheNearestShape) {
  try {
    find_model("llama-3.1-8B-instruct");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("\"llama-3.1-8b\""), std::string::npos)
        << error.what();
  }
}

// A folder whose config.json announces NF4 (or not) and whose file has the JSON of these weights.
struct QuantisedFolder {
  std::vector<std::string> in_4_bits;
  std::vector<std::string> double_quantised{};  // of them
  bool announced = true;

  ModelConfig config() const {
    const testing::TemporaryFolder folder;
    const char* more = R"(, "quantization_config": {"quant_method": "bitsandbytes",
                            "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})";
    folder.write("config.json", fmt::format("{{{}{}}}", kSmall, announced ? more : ""));
    std::vector<formats::TensorSpec> specs;
    std::vector<std::string> texts;
    for (const std::string& name : in_4_bits) {
      const bool is_double = std::ranges::count(double_quantised, name) > 0;
      formats::QuantState state{base::DType::bf16, {4, 6}, std::nullopt};
      if (is_double) state.nested_offset = 0.5F;
      texts.push_back(formats::to_json(state));
      specs.push_back({fmt::format("{}{}", name, formats::kStateSuffix),
                       base::DType::u8,
                       {std::ssize(texts.back())}});
    }
    formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
    for (size_t i = 0; i < specs.size(); ++i)
      writer.write(specs[i].name, texts[i].data(), std::ssize(texts[i]));
    writer.finish();
    return find_model(folder.path().string()).config;
  }
  std::string error() const {
    return testing::user_error_of([&] { config(); });
  }
};

std::vector<std::string> small_linears() {
  std::vector<std::string> names;
  for (const Weight& weight : weights_of(parse("")))
    if (weight.is_linear()) names.push_back(weight.name);
  return names;
}

TEST(FindModel, LinearsThatAreNotIn4BitsAreKept) {
  std::vector<std::string> names = small_linears();
  ASSERT_EQ(names.size(), 14U);
  EXPECT_TRUE(QuantisedFolder{names}.config().stored->kept.empty());
  const std::vector<std::string> kept{names[3], names[9]};
  names.erase(names.begin() + 9);
  names.erase(names.begin() + 3);
  EXPECT_EQ(QuantisedFolder{names}.config().stored->kept, kept);
}

TEST(FindModel, AHeadIn4BitsIsSeen) {
  std::vector<std::string> names = small_linears();
  EXPECT_EQ(QuantisedFolder{names}.config().stored->head, "");
  names.emplace_back("lm_head.weight");
  EXPECT_EQ(QuantisedFolder{names}.config().stored->head, "lm_head.weight");
}

TEST(FindModel, RefusesAnEmbeddingIn4Bits) {
  const std::string text = QuantisedFolder{{"model.embed_tokens.weight"}}.error();
  EXPECT_TRUE(contains(text, "'model.embed_tokens.weight' is stored in 4 bits"));
  EXPECT_TRUE(contains(text, "snug quantize"));
}

TEST(FindModel, RefusesFilesThatContradictTheirConfig) {
  const std::vector<std::string> names = small_linears();
  const std::string unsaid = QuantisedFolder{names, {}, false}.error();
  EXPECT_TRUE(contains(unsaid, "model.safetensors: tensor 'model.layers."));
  EXPECT_TRUE(contains(unsaid, "config.json has no quantization_config"));
  EXPECT_TRUE(contains(unsaid, "\"bnb_4bit_use_double_quant\": false}"));
  // An absent key means that scales are not quantised.
  const std::string reverse = QuantisedFolder{names, names}.error();
  EXPECT_TRUE(contains(reverse, "is double quantised, but"));
  EXPECT_TRUE(contains(reverse, "config.json says bnb_4bit_use_double_quant = false"));
  const std::string nothing = QuantisedFolder{{}}.error();
  EXPECT_TRUE(contains(nothing, "no linear of"));
  EXPECT_TRUE(contains(nothing, "remove the quantization_config"));
}

// transformers 5 writes its quantization_config and leaves the linear layers, which are of Falcon's
// own class, in 16 bits (docs/nf4.md). Of another family such a folder contradicts itself.
TEST(FindModel, AFalconThatTransformers5CallsQuantisedIsIn16Bits) {
  const auto find = [](const std::string& golden) {
    const std::filesystem::path model = "tests/goldens/" + golden + "/model";
    const testing::TemporaryFolder folder;
    nlohmann::json config = base::read_json_file(model / "config.json");
    config["quantization_config"] = {{"quant_method", "bitsandbytes"},
                                     {"load_in_4bit", true},
                                     {"bnb_4bit_quant_type", "nf4"},
                                     {"llm_int8_skip_modules", nullptr}};
    folder.write("config.json", config.dump());
    std::filesystem::copy_file(model / "model.safetensors", folder / "model.safetensors");
    return find_model(folder.path().string()).config;
  };
  for (const char* falcon : {"falcon", "falcon_grouped", "falcon_rw"})
    EXPECT_FALSE(find(falcon).stored) << falcon;
  EXPECT_TRUE(contains(testing::user_error_of([&] { find("gpt_neox"); }), "no linear of"));
}

TEST(FindModel, RefusesLinearsThatDiffer) {
  const std::vector<std::string> names = small_linears();
  const std::string text = QuantisedFolder{names, {names[5]}}.error();
  EXPECT_TRUE(contains(text, fmt::format("tensor '{}{}' is double quantised, but '{}' is", names[5],
                                         formats::kStateSuffix, names[0])));
  EXPECT_TRUE(contains(text, "snug quantize"));
}

// What is not downloaded yet can be planned; what is broken cannot.
TEST(FindModel, TakesAShapeWithoutItsFiles) {
  const testing::TemporaryFolder folder;
  folder.write("config.json", fmt::format("{{{}}}", kSmall));
  EXPECT_EQ(find_model(folder.path().string()).config.num_layers, 2);
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors"}})");
  EXPECT_EQ(find_model(folder.path().string()).config.num_layers, 2);
  folder.write("model.safetensors", "broken");
  EXPECT_TRUE(contains(testing::user_error_of([&] { find_model(folder.path().string()); }),
                       "model.safetensors"));
}

}  // namespace
}  // namespace snug::models
