// config.json in both of transformers' forms, and everything in it that is refused.
#include "models/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "formats/quant_state.h"
#include "formats/safetensors_header.h"
#include "models/rope.h"
#include "models/weights.h"

namespace snug::models {
namespace {

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

TEST(Config, GoldenFoldersParseInBothForms) {
  for (const char* name :
       {"basic", "grouped_tied", "biases", "head_dim", "rope_llama3", "rope_linear", "mistral",
        "qwen2", "qwen3", "phi3", "phi3_long", "phi3_short"}) {
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
    EXPECT_EQ(inverse_frequencies(five), inverse_frequencies(four)) << name;
    EXPECT_EQ(parameter_count(five), parameter_count(four)) << name;
  }
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
        Case{R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2.0})", "yarn"},
        Case{R"(, "rope_scaling": {"type": "linear", "factor": 0.5})", "factor"},
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
        Case{"qwen2", R"(, "rope_scaling": {"type": "yarn", "factor": 4.0})", "yarn"},
        Case{"llama", R"(, "partial_rotary_factor": 0.5)", "partial_rotary_factor"},
        Case{"mistral", R"(, "num_local_experts": 8)", "experts"}}) {
    const std::string error = error_of(
        of_family(wrong.family, std::string(R"(, "num_key_value_heads": 2)") + wrong.more));
    EXPECT_NE(error.find(wrong.named), std::string::npos) << error;
    EXPECT_NE(error.find("config.json"), std::string::npos) << error;
  }
}

TEST(Config, NamesWhatIsMissingOrImpossible) {
  EXPECT_NE(error_of("{}").find("model_type"), std::string::npos);
  EXPECT_NE(error_of(R"({"model_type": "t5"})").find("t5"), std::string::npos);
  EXPECT_NE(error_of(R"({"model_type": "llama"})").find("hidden_size"), std::string::npos);
  EXPECT_NE(error_of(R"({"model_type": "llama", "hidden_size": -4})").find("-4"),
            std::string::npos);
  EXPECT_NE(error_of("{\n\"model_type\": llama}").find("config.json:2"), std::string::npos);
}

TEST(FindModel, NamesTheNearestShape) {
  try {
    find_model("llama-3.1-8B-instruct");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("llama-3.1-8b"), std::string::npos) << error.what();
  }
}

// A folder whose config.json says NF4 and whose file has these weights in 4 bits.
ModelConfig quantised_folder(const std::vector<std::string>& in_4_bits) {
  const testing::TemporaryFolder folder;
  folder.write("config.json", fmt::format("{{{}, \"quantization_config\": {{\"quant_method\": "
                                          "\"bitsandbytes\", \"load_in_4bit\": true, "
                                          "\"bnb_4bit_quant_type\": \"nf4\"}}}}",
                                          kSmall));
  formats::SafetensorsHeader header;
  for (const std::string& name : in_4_bits)
    header.tensors.push_back(
        {fmt::format("{}{}", name, formats::kStateSuffix), "U8", {}, {0}, 0, 0});
  folder.write("model.safetensors", formats::make_safetensors_header(header));
  return find_model(folder.path().string()).config;
}

TEST(FindModel, LinearsThatAreNotIn4BitsAreKept) {
  std::vector<std::string> names;
  for (const Weight& weight : weights_of(parse("")))
    if (weight.is_linear()) names.push_back(weight.name);
  ASSERT_EQ(names.size(), 14U);
  EXPECT_TRUE(quantised_folder(names).stored->kept.empty());
  const std::vector<std::string> kept{names[3], names[9]};
  names.erase(names.begin() + 9);
  names.erase(names.begin() + 3);
  EXPECT_EQ(quantised_folder(names).stored->kept, kept);
}

TEST(FindModel, RefusesAHeadIn4Bits) {
  try {
    quantised_folder({"lm_head.weight"});
    FAIL();
  } catch (const base::UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'lm_head.weight' is stored in 4 bits"), std::string::npos) << text;
    EXPECT_NE(text.find("snug quantize"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace snug::models
