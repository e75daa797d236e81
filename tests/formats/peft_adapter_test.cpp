#include "formats/adapter/peft_adapter.h"

#include "../base/temporary_folder.h"
#include "base/json.h"
#include "formats/adapter/adapter_modules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

using base::DType;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

LoraConfig small_config() {
  LoraConfig config;
  config.r = 2;
  config.alpha = 4;
  config.dropout = 0.1;
  config.target_modules = {"q_proj", "v_proj"};
  config.base_model = "models/base";
  return config;
}

const std::vector<LoraModule> kModules = {{"model.layers.0.self_attn.q_proj", 3, 5},
                                          {"model.layers.0.self_attn.v_proj", 3, 4}};

void write_tensors(const TemporaryFolder& folder, const std::vector<TensorSpec>& tensors) {
  SafetensorsWriter writer(folder / kAdapterWeightsName, tensors);
  for (const TensorSpec& tensor : tensors) {
    const std::vector<float> values(static_cast<size_t>(tensor.bytes() / 4), 1.5F);
    writer.write(tensor.name, values.data(), tensor.bytes());
  }
  writer.finish();
}

std::string open_error(const TemporaryFolder& folder) {
  return user_error_of([&] { const PeftAdapter adapter(folder.path()); });
}

TEST(LoraConfig, WritesTheKeysOfPeft) {
  const TemporaryFolder folder;
  write_lora_config(folder.path(), small_config());
  const json document = json::parse(base::read_text_file(folder / "adapter_config.json"));
  EXPECT_EQ(document["peft_type"], "LORA");
  EXPECT_EQ(document["task_type"], "CAUSAL_LM");
  EXPECT_EQ(document["base_model_name_or_path"], "models/base");
  EXPECT_EQ(document["r"], 2);
  EXPECT_TRUE(document["lora_alpha"].is_number_integer()) << "PEFT declares a whole number";
  EXPECT_EQ(document["target_modules"], json({"q_proj", "v_proj"}));
  EXPECT_EQ(document["bias"], "none");
  EXPECT_EQ(document["inference_mode"], true);
  for (const char* key : {"modules_to_save", "layers_to_transform", "auto_mapping", "revision"})
    EXPECT_TRUE(document.contains(key) && document[key].is_null()) << key;
  for (const char* key : {"fan_in_fan_out", "use_rslora", "use_dora"})
    EXPECT_EQ(document[key], false) << key;
}

// Of a base whose linears are stored (in, out). PEFT sets it right by the model, so it is not read.
TEST(LoraConfig, TellsPeftOfTransposedLinears) {
  const TemporaryFolder folder;
  LoraConfig config = small_config();
  config.fan_in_fan_out = true;
  write_lora_config(folder.path(), config);
  const json document = json::parse(base::read_text_file(folder / "adapter_config.json"));
  EXPECT_EQ(document["fan_in_fan_out"], true);
  EXPECT_EQ(read_lora_config(folder.path()).r, 2);
}

TEST(LoraConfig, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  LoraConfig config = small_config();
  config.alpha = 2.5;
  config.use_rslora = true;
  config.target_modules = {"all-linear"};
  write_lora_config(folder.path(), config);
  const LoraConfig again = read_lora_config(folder.path());
  EXPECT_EQ(again.r, 2);
  EXPECT_EQ(again.alpha, 2.5);
  EXPECT_EQ(again.dropout, 0.1);
  EXPECT_TRUE(again.use_rslora);
  EXPECT_EQ(again.target_modules, config.target_modules);
  EXPECT_EQ(again.base_model, "models/base");
  EXPECT_DOUBLE_EQ(again.scale(), 2.5 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(small_config().scale(), 2.0);
}

struct BadConfig {
  const char* name;
  const char* patch;  // merged into a good config
  const char* message;
};

class LoraConfigError : public ::testing::TestWithParam<BadConfig> {};

TEST_P(LoraConfigError, IsNamed) {
  const TemporaryFolder folder;
  write_lora_config(folder.path(), small_config());
  json document = json::parse(base::read_text_file(folder / "adapter_config.json"));
  document.update(json::parse(GetParam().patch));
  folder.write("adapter_config.json", document.dump());
  const std::string error = user_error_of([&] { read_lora_config(folder.path()); });
  EXPECT_TRUE(contains(error, GetParam().message));
  EXPECT_TRUE(contains(error, "adapter_config.json: "));
}

INSTANTIATE_TEST_SUITE_P(
    All, LoraConfigError,
    ::testing::Values(
        BadConfig{"peft_type", R"({"peft_type": "IA3"})", "'peft_type' is 'IA3'"},
        BadConfig{"rank_pattern", R"({"rank_pattern": {"q_proj": -4}})", "is -4; expected more"},
        BadConfig{"alpha_pattern", R"({"alpha_pattern": ["q_proj"]})",
                  "'alpha_pattern' must hold a JSON object"},
        BadConfig{"experts", R"({"target_parameters": 3})", "'target_parameters' must be"},
        BadConfig{"lora_bias", R"({"lora_bias": true})",
                  "'lora_bias' is true, which Snug cannot honour"},
        BadConfig{"bias", R"({"bias": "all"})", "'bias' is 'all'"},
        BadConfig{"modules_to_save", R"({"modules_to_save": 3})", "'modules_to_save' must be"},
        BadConfig{"replication", R"({"layer_replication": [[0, 4]]})", "'layer_replication' is"},
        BadConfig{"later_peft", R"({"some_new_key": 3})", "'some_new_key' is 3"},
        BadConfig{"pissa", R"({"init_lora_weights": "pissa_niter_4"})", "changes the base weights"},
        BadConfig{"olora", R"({"init_lora_weights": "OLoRA"})", "is 'OLoRA', which changes"},
        BadConfig{"lora_ga", R"({"init_lora_weights": "lora_ga"})", "changes the base weights"},
        BadConfig{"no_targets", R"({"target_modules": []})", "'target_modules' is empty"},
        BadConfig{"targets_type", R"({"target_modules": 3})", "'target_modules' must be"},
        BadConfig{"r_zero", R"({"r": 0})", "'r' is 0; expected 1 or more"},
        BadConfig{"r_text", R"({"r": "8"})", "'r' must be a whole number"},
        BadConfig{"r_gone", R"({"r": null})", "'r' is missing"},
        BadConfig{"dropout", R"({"lora_dropout": 1.0})", "'lora_dropout' is 1"}),
    [](const auto& test) { return test.param.name; });

// PEFT's setting selects the biases that the model has, and saves those.
TEST(LoraConfig, BiasesOfAModelThatHasNoneAreFine) {
  const TemporaryFolder folder;
  write_lora_config(folder.path(), small_config());
  json document = json::parse(base::read_text_file(folder / "adapter_config.json"));
  std::vector<TensorSpec> tensors = adapter_tensors(kModules, 2, DType::f32);
  for (const char* bias : {"all", "lora_only"}) {
    document["bias"] = bias;
    folder.write("adapter_config.json", document.dump());
    write_tensors(folder, tensors);
    EXPECT_EQ(PeftAdapter(folder.path()).modules().size(), 2U) << bias;
    auto with_bias = tensors;
    with_bias.push_back(
        {"base_model.model." + kModules[0].module + ".base_layer.bias", DType::f32, {5}});
    write_tensors(folder, with_bias);
    EXPECT_TRUE(contains(open_error(folder), "no biases; expected 'none'")) << bias;
  }
  document["bias"] = "some";
  folder.write("adapter_config.json", document.dump());
  write_tensors(folder, tensors);
  EXPECT_TRUE(contains(open_error(folder), "'bias' is 'some'"));
}

TEST(LoraConfig, HarmlessKeysOfOtherVersionsAreFine) {
  const TemporaryFolder folder;
  folder.write("adapter_config.json", R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16,
    "target_modules": ["q_proj"], "peft_version": "0.17.0", "qalora_group_size": 16,
    "init_lora_weights": "gaussian", "exclude_modules": null, "lora_bias": false,
    "trainable_token_indices": null, "loftq_config": {}})");
  EXPECT_EQ(read_lora_config(folder.path()).target_modules, std::vector<std::string>{"q_proj"});
}

// The config of a small adapter with `patch` in it, next to tensors of layers 0 and 1.
std::vector<std::string> narrowed_targets(const char* patch) {
  const TemporaryFolder folder;
  write_lora_config(folder.path(), small_config());
  json document = json::parse(base::read_text_file(folder / "adapter_config.json"));
  document.update(json::parse(patch));
  folder.write("adapter_config.json", document.dump());
  write_tensors(folder, adapter_tensors({{"model.layers.0.self_attn.q_proj", 3, 5},
                                         {"model.layers.1.self_attn.q_proj", 3, 5}},
                                        2, DType::f32));
  return read_lora_config(folder.path()).target_modules;
}

TEST(LoraConfig, WhereTargetsAreNarrowedTheFileSaysWhichModulesThereAre) {
  const std::vector<std::string> both = {"model.layers.0.self_attn.q_proj",
                                         "model.layers.1.self_attn.q_proj"};
  EXPECT_EQ(narrowed_targets(R"({"layers_to_transform": [0, 1, 5]})"), both);
  EXPECT_EQ(narrowed_targets(R"({"layers_to_transform": [0, 1], "layers_pattern": "layers"})"),
            both);
  EXPECT_EQ(narrowed_targets(R"({"exclude_modules": ["v_proj"]})"), both);
  EXPECT_EQ(narrowed_targets(R"({"exclude_modules": ".*layers.[2-9].*"})"), both);
  EXPECT_EQ(narrowed_targets(R"({"target_modules": ".*(q|v)_proj"})"), both);
  EXPECT_EQ(narrowed_targets(R"({"target_modules": "(?:model\\.)?layers\\.[01]\\..*?q_proj\\Z"})"),
            both);
  EXPECT_EQ(narrowed_targets(R"({"target_modules": "All-Linear", "exclude_modules": ["v_proj"]})"),
            both);
  EXPECT_EQ(narrowed_targets(R"({"target_modules": "All-Linear"})"),
            std::vector<std::string>{"all-linear"});
  // A full name counts in whatever layer it is.
  EXPECT_EQ(narrowed_targets(R"({"layers_to_transform": [1], "target_modules":
                                ["model.layers.0.self_attn.q_proj", "q_proj"]})"),
            both);
  EXPECT_EQ(narrowed_targets(R"({"exclude_modules": [], "dropout": 0})"),
            (std::vector<std::string>{"q_proj", "v_proj"}));
  const auto refusal = [](const char* patch) {
    return user_error_of([&] { narrowed_targets(patch); });
  };
  EXPECT_TRUE(contains(refusal(R"({"layers_to_transform": 1})"),
                       "'layers_to_transform' leaves out 'model.layers.0.self_attn.q_proj'"));
  EXPECT_TRUE(contains(refusal(R"({"exclude_modules": ["q_proj"]})"), "'exclude_modules' leaves"));
  EXPECT_TRUE(contains(refusal(R"({"layers_to_transform": ["a"]})"), "expected a layer or a list"));
  EXPECT_TRUE(contains(refusal(R"({"layers_to_transform": [0, 1], "layers_pattern": "h|layers"})"),
                       "'layers_pattern' is the regular expression 'h|layers'"));
  EXPECT_TRUE(contains(refusal(R"({"target_modules": "q_proj"})"),
                       "'target_modules' leaves out 'model.layers.0.self_attn.q_proj'"));
  EXPECT_TRUE(contains(refusal(R"({"target_modules": ".*layers\\.0.*"})"),
                       "'target_modules' leaves out 'model.layers.1.self_attn.q_proj'"));
  EXPECT_TRUE(contains(refusal(R"({"target_modules": ["v_proj"], "exclude_modules": ["k_proj"]})"),
                       "'target_modules' leaves out 'model.layers.0.self_attn.q_proj'"));
  EXPECT_TRUE(contains(refusal(R"({"exclude_modules": ".*\\.1\\..*"})"),
                       "'exclude_modules' leaves out 'model.layers.1.self_attn.q_proj'"));
  EXPECT_TRUE(contains(refusal(R"({"target_modules": ".*(q_proj"})"),
                       "the regular expression '.*(q_proj' is not valid: missing closing"));
  EXPECT_TRUE(contains(refusal(R"({"exclude_modules": "\\p{L}+"})"),
                       "the regular expression '\\p{L}+' has '\\p' at byte 0, which is not"));
}

// PEFT's names of the two tables are these alone, and a pattern must match one of them whole.
TEST(LoraConfig, AdaptersOfEmbeddingAndHeadAreTiedWhereTheConfigSelectsOne) {
  const auto ties = [](json config) {
    config["ensure_weight_tying"] = config.value("ensure_weight_tying", true);
    return ties_adapters(base::JsonObject(config, "adapter_config.json"));
  };
  for (const json& targets : {json{"q_proj", "model.embed_tokens"}, json::array({"lm_head"}),
                              json(".*embed_tokens"), json(".*q_proj|lm_head")}) {
    EXPECT_TRUE(ties({{"target_modules", targets}})) << targets;
    EXPECT_FALSE(ties({{"target_modules", targets}, {"ensure_weight_tying", false}})) << targets;
    EXPECT_FALSE(ties({{"target_modules", targets}, {"modules_to_save", {"lm_head"}}})) << targets;
  }
  for (const json& targets :
       {json{"q_proj", "wte"}, json("all-linear"), json(".*q_proj|model.embed_tokens")})
    EXPECT_FALSE(ties({{"target_modules", targets}})) << targets;
}

TEST(PeftAdapter, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  write_lora_config(folder.path(), small_config());
  write_tensors(folder, adapter_tensors(kModules, 2, DType::f32));
  const PeftAdapter adapter(folder.path());
  ASSERT_EQ(adapter.modules().size(), 2U);
  EXPECT_EQ(adapter.modules()[1].module, "model.layers.0.self_attn.v_proj");
  EXPECT_EQ(adapter.modules()[1].in_features, 3);
  EXPECT_EQ(adapter.modules()[1].out_features, 4);
  const TensorInfo& a = adapter.lora_a(adapter.modules()[0]);
  EXPECT_EQ(a.name, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 3}));
  const TensorInfo& b = adapter.lora_b(adapter.modules()[0]);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{5, 2}));
  std::vector<float> values(10);
  adapter.file().read(b, values.data());
  EXPECT_EQ(values, std::vector<float>(10, 1.5F));
}

TEST(PeftAdapter, MagnitudesAreThereWhereTheConfigSaysSo) {
  const TemporaryFolder folder;
  LoraConfig config = small_config();
  config.use_dora = true;
  write_lora_config(folder.path(), config);
  EXPECT_TRUE(read_lora_config(folder.path()).use_dora);
  const std::vector<TensorSpec> plain{{lora_a_key(LoraModule{"m.q_proj"}), DType::f32, {2, 3}},
                                      {lora_b_key(LoraModule{"m.q_proj"}), DType::f32, {5, 2}}};
  const auto error_with = [&](const TensorSpec& magnitude) {
    std::vector<TensorSpec> tensors = plain;
    tensors.push_back(magnitude);
    write_tensors(folder, tensors);
    return open_error(folder);
  };
  const std::string name = "base_model.model.m.q_proj.lora_magnitude_vector";
  EXPECT_EQ(lora_magnitude_key("m.q_proj"), name);
  EXPECT_EQ(error_with({name, DType::f32, {5}}), "(no error)");
  EXPECT_TRUE(contains(error_with({name, DType::f32, {3}}), "has shape [3]; expected [5]"));
  EXPECT_TRUE(contains(error_with({name, DType::i32, {5}}), "is stored as I32; expected"));
  EXPECT_TRUE(contains(error_with({lora_magnitude_key("m.k_proj"), DType::f32, {5}}),
                       "lora_A.weight' without its"));
  write_tensors(folder, plain);
  EXPECT_TRUE(contains(open_error(folder), "lora_magnitude_vector'; the adapter is incomplete"));
  config.use_dora = false;
  write_lora_config(folder.path(), config);
  EXPECT_TRUE(contains(error_with({name, DType::f32, {5}}), "is not part of a plain LoRA"));
}

// Of an embedding, with and without the base model's own table, which PEFT saves next to them.
TEST(PeftAdapter, EmbeddingsHaveNamesOfTheirOwn) {
  const TemporaryFolder folder;
  write_lora_config(folder.path(), small_config());
  const LoraModule module{"m.embed_tokens", 7, 5, true};
  const std::string name = "base_model.model.m.embed_tokens.";
  EXPECT_EQ(lora_a_key(module), name + "lora_embedding_A");
  EXPECT_EQ(lora_b_key(module), name + "lora_embedding_B");
  const TensorSpec a{lora_a_key(module), DType::f32, {2, 7}};
  const TensorSpec b{lora_b_key(module), DType::f32, {5, 2}};
  const auto error_with = [&](const std::vector<TensorSpec>& tensors) {
    write_tensors(folder, tensors);
    return open_error(folder);
  };
  const std::string base = name + "base_layer.weight";
  for (const std::vector<TensorSpec>& tensors :
       {std::vector<TensorSpec>{a, b}, {a, b, {base, DType::f32, {7, 5}}}}) {
    ASSERT_EQ(error_with(tensors), "(no error)");
    const PeftAdapter adapter(folder.path());
    ASSERT_EQ(adapter.modules().size(), 1U);
    EXPECT_EQ(adapter.modules().front().module, module.module);
    EXPECT_TRUE(adapter.modules().front().is_embedding);
    EXPECT_EQ(adapter.modules().front().in_features, 7);
    EXPECT_EQ(adapter.modules().front().out_features, 5);
    EXPECT_EQ(stored_modules(folder.path()), std::vector<std::string>{module.module});
  }
  EXPECT_TRUE(contains(error_with({a, b, {base, DType::f32, {8, 5}}}),
                       "has shape [8, 5]; expected [7, 5], as its adapter has it"));
  EXPECT_TRUE(contains(error_with({a}), "lora_embedding_B'; the adapter is incomplete"));
  EXPECT_TRUE(contains(error_with({b}), "lora_embedding_A'; the adapter is incomplete"));
  const TensorSpec other{"base_model.model.m.q_proj.base_layer.weight", DType::f32, {5, 7}};
  EXPECT_TRUE(contains(error_with({a, b, other}), "the adapter is incomplete"));
}

TEST(PeftAdapter, BrokenAdapters) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(open_error(folder), "there is no adapter_config.json here"));
  write_lora_config(folder.path(), small_config());
  EXPECT_TRUE(contains(open_error(folder), "has neither adapter_model.safetensors nor"));
  folder.write("adapter_model.bin", "x");
  EXPECT_TRUE(contains(open_error(folder), "adapter_model.bin: a pickle file"));

  const std::string a = lora_a_key(LoraModule{"m.q_proj"});
  const std::string b = lora_b_key(LoraModule{"m.q_proj"});
  const TensorSpec good_a{a, DType::f32, {2, 3}};
  const TensorSpec good_b{b, DType::f32, {5, 2}};
  const auto error_with = [&](const std::vector<TensorSpec>& tensors) {
    write_tensors(folder, tensors);
    return open_error(folder);
  };
  EXPECT_EQ(error_with({good_a, good_b}), "(no error)");
  EXPECT_TRUE(contains(error_with({}), "the adapter holds no tensors"));
  EXPECT_TRUE(contains(error_with({good_a}), "lora_A.weight' without its"));
  EXPECT_TRUE(contains(error_with({good_b}), "lora_B.weight' without its"));
  EXPECT_TRUE(contains(error_with({{a, DType::f32, {4, 3}}, good_b}),
                       "has shape [4, 3]; expected [2, in_features]"));
  EXPECT_TRUE(contains(error_with({good_a, {b, DType::f32, {5, 4}}}),
                       "has shape [5, 4]; expected [out_features, 2]"));
  EXPECT_TRUE(contains(error_with({{a, DType::f32, {6}}, good_b}), "has shape [6]"));
  EXPECT_TRUE(
      contains(error_with({{a, DType::i32, {2, 3}}, good_b}), "is stored as I32; expected"));
  EXPECT_TRUE(contains(error_with({good_a, good_b, {"lm_head.weight", DType::f32, {1}}}),
                       "tensor 'lm_head.weight' is not part of a plain LoRA"));
}

}  // namespace
}  // namespace snug::formats
