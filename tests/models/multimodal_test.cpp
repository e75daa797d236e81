// What is said of models that hold a text model next to others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "models/config/config.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/missing_families.h"
#include "models/weights.h"

namespace snug::models {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    parse_config(text, "config.json");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Multimodal, ModelsAreNamedWithTheirTextPart) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    const std::string error = refusal_of(text);
    for (const char* word : words)
      EXPECT_NE(error.find(word), std::string::npos) << word << " in " << error;
  };
  says(R"({"model_type": "llava", "text_config": {"model_type": "llama"}, "vision_config": {}})",
       {"'model_type' is \"llava\", a multimodal model (with vision_config)",
        "its text part, \"llama\" in text_config, is: take it out", "docs/multimodal.md"});
  says(R"({"model_type": "internvl_chat", "llm_config": {"model_type": "qwen2"}})",
       {"a multimodal model, which", "\"qwen2\" in llm_config, is: take it out"});
  says(R"({"model_type": "emu", "text_config": {"model_type": "emu_text"}, "vision_config": {}})",
       {"\"emu_text\" in text_config, is not built either; snug has"});
  says(
      R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text"}, "vision_config": {}})",
      {"its text part is \"llama4_text\" in text_config, which is not built (Llama 4",
       "It needs attention in chunks"});
  says(
      R"({"model_type": "omni", "thinker_config": {"text_config": {"model_type": "qwen3"}, "audio_config": {}}})",
      {"\"qwen3\" in thinker_config.text_config, is: take it out"});
  says(R"({"model_type": "git", "vision_config": {}, "hidden_size": 8})",
       {"\"git\", a multimodal model (with vision_config)", "docs/multimodal.md"});
  says(R"({"model_type": "mamba"})", {"is \"mamba\", which is not built; snug has"});
  says(R"({"model_type": "olmo"})",
       {"'model_type' is \"olmo\", which is not built (OLMo 1B and 7B of 2024). It needs layer "
        "norms without weights"});
}

TEST(Multimodal, MissingFamiliesAreInTheDocsAndAreMissing) {
  const std::string page = base::read_text_file("docs/models.md");
  std::string_view before;
  for (const MissingFamily& family : missing_families()) {
    EXPECT_EQ(find_family(family.model_type), nullptr) << family.model_type;
    EXPECT_LT(before, family.model_type);
    before = family.model_type;
    const std::string row =
        fmt::format("| {} | {} | {} |\n", family.model_type, family.models, family.needs);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

// As Google publishes Gemma 3 4B: what its class has as a default is left out.
TEST(Multimodal, TheTextPartIsAModelOfItsOwn) {
  const ModelConfig config = parse_config(
      R"({"model_type": "gemma3", "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152},
          "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
            "intermediate_size": 10240, "sliding_window": 1024,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0}}})",
      "config.json");
  ModelConfig expected = preset("gemma-3-4b-pt").value();
  EXPECT_EQ(config.text_module, "model.language_model");
  expected.text_module = config.text_module;
  const auto names_and_sizes = [](const ModelConfig& of) {
    std::vector<std::string> lines;
    lines.reserve(weights_of(of).size());
    for (const Weight& weight : weights_of(of))
      lines.push_back(fmt::format("{} {}", weight.name, weight.shape.elements()));
    return lines;
  };
  EXPECT_EQ(names_and_sizes(config), names_and_sizes(expected));
  EXPECT_EQ(config.windows, expected.windows);
  EXPECT_EQ(inverse_frequencies(config), inverse_frequencies(expected));
}

// The tie is a key of the whole model, and true where it is absent.
TEST(Multimodal, TheWholeSaysWhetherTheHeadIsTied) {
  const auto is_tied = [](const char* more) {
    return parse_config(
               fmt::format(
                   R"({{"model_type": "mistral3"{}, "text_config": {{"model_type": "mistral",
                   "hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1,
                   "num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 16,
                   "tie_word_embeddings": false}}}})",
                   more),
               "config.json")
        .tied_embeddings;
  };
  EXPECT_TRUE(is_tied(""));
  EXPECT_FALSE(is_tied(R"(, "tie_word_embeddings": false)"));
}

// As Qwen publishes 3.6 27B, with the keys of images and of layers that predict further tokens.
// transformers' class of the whole has no tie as its default, whatever the text part says.
TEST(Multimodal, Qwen35IsItsTextPart) {
  const auto parsed = [](const char* more) {
    return parse_config(
        fmt::format(
            R"({{"model_type": "qwen3_5", "image_token_id": 248056{}, "vision_config": {{"depth": 27}},
            "text_config": {{"model_type": "qwen3_5_text", "attn_output_gate": true, "hidden_size": 5120,
            "intermediate_size": 17408, "num_hidden_layers": 64, "num_attention_heads": 24,
            "num_key_value_heads": 4, "full_attention_interval": 4, "linear_num_value_heads": 48,
            "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1, "output_gate_type": "swish",
            "max_position_embeddings": 262144, "tie_word_embeddings": true,
            "rope_parameters": {{"mrope_interleaved": true, "mrope_section": [11, 11, 10],
            "partial_rotary_factor": 0.25, "rope_theta": 10000000, "rope_type": "default"}}}}}})",
            more),
        "config.json");
  };
  const ModelConfig config = parsed("");
  const ModelConfig expected = preset("qwen3.6-27b").value();
  EXPECT_EQ(config.text_module, "model.language_model");
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_TRUE(parsed(R"(, "tie_word_embeddings": true)").tied_embeddings);
  EXPECT_EQ(parameter_count(config), parameter_count(expected));
  EXPECT_EQ(config.recurrent_layers, expected.recurrent_layers);
  EXPECT_EQ(inverse_frequencies(config), inverse_frequencies(expected));
}

// As Qwen publishes 3.5 35B-A3B. Its config.json does not say how its files hold experts.
TEST(Multimodal, Qwen35OfExpertsIsItsTextPart) {
  const ModelConfig config = parse_config(
      R"({"model_type": "qwen3_5_moe", "image_token_id": 248056, "tie_word_embeddings": false,
          "vision_config": {"model_type": "qwen3_5_moe", "depth": 27},
          "text_config": {"model_type": "qwen3_5_moe_text", "attn_output_gate": true,
          "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
          "num_key_value_heads": 2, "full_attention_interval": 4, "linear_num_value_heads": 32,
          "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1, "num_experts": 256,
          "num_experts_per_tok": 8, "moe_intermediate_size": 512,
          "shared_expert_intermediate_size": 512, "router_aux_loss_coef": 0.001,
          "max_position_embeddings": 262144, "rope_parameters": {"mrope_interleaved": true,
          "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25, "rope_theta": 10000000,
          "rope_type": "default"}}})",
      "config.json");
  const ModelConfig expected = preset("qwen3.5-35b-a3b").value();
  EXPECT_EQ(config.text_module, "model.language_model");
  EXPECT_EQ(parameter_count(config), parameter_count(expected));
  EXPECT_EQ(config.recurrent_layers, expected.recurrent_layers);
  EXPECT_EQ(inverse_frequencies(config), inverse_frequencies(expected));
  EXPECT_TRUE(config.experts_in_one);
}

// As Google publishes Gemma 4 31B and 12B: the whole of the latter has another type.
TEST(Multimodal, Gemma4IsItsTextPart) {
  const auto expect_preset = [](const std::string& config, const char* name) {
    const ModelConfig parsed = parse_config(config, "config.json");
    const ModelConfig expected = preset(name).value();
    EXPECT_EQ(parsed.text_module, "model.language_model");
    EXPECT_TRUE(parsed.tied_embeddings);
    EXPECT_EQ(parameter_count(parsed), parameter_count(expected));
    EXPECT_EQ(parsed.windows, expected.windows);
    EXPECT_EQ(parsed.logit_softcap, expected.logit_softcap);
    EXPECT_EQ(parsed.attention_scale, 1.0);
    EXPECT_EQ(inverse_frequencies(parsed), inverse_frequencies(expected));
  };
  const std::string shared =
      R"("head_dim": 256, "global_head_dim": 512, "attention_k_eq_v": true,
         "sliding_window": 1024, "enable_moe_block": false, "num_experts": null,
         "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "vocab_size": 262144,
         "use_bidirectional_attention": "vision", "final_logit_softcapping": 30.0)";
  expect_preset(fmt::format(
                    R"({{"model_type": "gemma4", "vision_config": {{}}, "audio_config": null,
      "text_config": {{"model_type": "gemma4_text", "hidden_size": 5376,
      "intermediate_size": 21504, "num_hidden_layers": 60, "num_attention_heads": 32,
      "num_key_value_heads": 16, "num_global_key_value_heads": 4, {}, "rope_parameters": {{
      "full_attention": {{"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
      "rope_type": "proportional"}},
      "sliding_attention": {{"rope_theta": 10000.0, "rope_type": "default"}}}}}}}})",
                    shared),
                "gemma-4-31b");
  expect_preset(fmt::format(
                    R"({{"model_type": "gemma4_unified", "vision_config": {{}},
      "text_config": {{"model_type": "gemma4_unified_text", "hidden_size": 3840,
      "intermediate_size": 15360, "num_hidden_layers": 48, "num_attention_heads": 16,
      "num_key_value_heads": 8, "num_global_key_value_heads": 1, {}}}}})",
                    shared),
                "gemma-4-12b");
}

// As Qwen publishes 2.5 VL 3B, with the keys of the text part next to those of the whole, and as
// transformers 5 writes it.
TEST(Multimodal, RenamedTextPartsAreTheirFamilies) {
  const std::string shape = R"("hidden_size": 2048, "intermediate_size": 11008,
      "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
      "vocab_size": 151936, "rms_norm_eps": 1e-06, "max_window_layers": 70, "sliding_window": 32768,
      "use_sliding_window": false, "max_position_embeddings": 128000)";
  const std::string flat = R"({"model_type": "qwen2_5_vl", "vision_config": {"depth": 32},
      "rope_theta": 1000000.0, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
      "tie_word_embeddings": true, )" +
                           shape + "}";
  const std::string nested = R"({"model_type": "qwen2_5_vl", "vision_config": {"depth": 32},
      "text_config": {"model_type": "qwen2_5_vl_text", "tie_word_embeddings": true,
      "rope_parameters": {"rope_type": "mrope", "mrope_section": [16, 24, 24]}, )" +
                             shape + "}}";
  const ModelConfig expected = preset("qwen2.5-3b").value();
  for (const std::string& text : {flat, nested}) {
    const ModelConfig config = parse_config(text, "config.json");
    EXPECT_EQ(config.model_type, "qwen2");
    EXPECT_EQ(config.text_module, "model.language_model");
    EXPECT_TRUE(config.tied_embeddings);
    EXPECT_EQ(parameter_count(config), parameter_count(expected));
    EXPECT_EQ(inverse_frequencies(config), inverse_frequencies(expected));
  }
  const ModelConfig qwen3 = parse_config(
      R"({"model_type": "qwen3_vl", "vision_config": {}, "text_config": {
          "model_type": "qwen3_vl_text", "num_key_value_heads": 8, "hidden_size": 5120,
          "num_attention_heads": 64, "num_hidden_layers": 64, "intermediate_size": 25600,
          "rope_theta": 5000000, "rope_scaling": {"mrope_interleaved": true,
          "mrope_section": [24, 20, 20], "rope_type": "default"}}})",
      "config.json");
  EXPECT_EQ(qwen3.rope.theta, 5e6);
  EXPECT_EQ(parameter_count(qwen3), parameter_count(preset("qwen3-32b").value()));
}

}  // namespace
}  // namespace snug::models
