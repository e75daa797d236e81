// config.json in both of transformers' forms, and everything in it that is refused.
#include "models/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/temporary_folder.h"
#include "formats/quant_state.h"
#include "formats/safetensors_writer.h"
#include "models/rope.h"
#include "models/weights.h"

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

TEST(FindModel, RefusesAHeadIn4Bits) {
  const std::string text = QuantisedFolder{{"lm_head.weight"}}.error();
  EXPECT_TRUE(contains(text, "'lm_head.weight' is stored in 4 bits"));
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
