// GGUF files as sources of weights: files that llama.cpp's own converter made of the models in
// tests/goldens, and the same files with something changed.
#include "convert/source/gguf_weights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "convert/gguf_file_changes.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/gguf/imported_rope.h"
#include "models/weights.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::GgmlType;
using formats::GgufFile;
using formats::GgufTensorInfo;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

fs::path converted(const std::string& name) {
  return "tests/goldens/gguf/converted/" + name + ".gguf";
}
fs::path folder_of(const std::string& name) { return "tests/goldens/" + name + "/model"; }

// All values, read in pieces of this many rows.
std::vector<float> imported(const GgufWeights& weights, const SourceTensor& tensor, int64_t piece) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  const int64_t width = tensor.row_elements();
  for (int64_t row = 0; row < tensor.rows(); row += piece) {
    const int64_t rows = std::min(piece, tensor.rows() - row);
    weights.read(tensor, row, rows,
                 std::span(values).subspan(static_cast<size_t>(row * width),
                                           static_cast<size_t>(rows * width)));
  }
  return values;
}

std::vector<float> golden_values(const formats::TensorIndex& index, const std::string& name) {
  const formats::IndexedTensor& tensor = index.at(name);
  std::vector<float> values(static_cast<size_t>(tensor.info->elements()));
  index.read(tensor, values.data());
  return values;
}

struct Converted {
  std::string name;
  // Keys of config.json that the file does not have, so that the import has another value.
  std::set<std::string> lost{};
  float tolerance = 0;  // of norms that the file holds plus one
};

const std::set<std::string> kWindow{"sliding_window", "use_sliding_window", "max_window_layers",
                                    "layer_types"};

const Converted kConverted[] = {
    {"biases"},
    {"rope_llama3"},
    {"rope_yarn"},
    {"mixtral", kWindow},
    // llama.cpp computes with the inverse root of the heads' width.
    {"gemma2", {"query_pre_attn_scalar"}, 1e-7F},
    {"gemma3", {"query_pre_attn_scalar", "layer_types"}, 1e-7F},
    {"phi", {"resid_pdrop"}},
    {"phi3_long"},
    {"gpt2", {"attn_pdrop", "embd_pdrop", "resid_pdrop"}},
    {"gpt_neox", {"rotary_emb_base", "rope_theta", "rotary_pct"}},
    {"bloom"},
    {"falcon_grouped", {"max_position_embeddings"}},
    {"olmo2"},
    {"stablelm", {"partial_rotary_factor"}},
    // llama.cpp computes with the gate of the published models.
    {"gpt_oss", {"swiglu_limit", "swiglu_alpha", "router_aux_loss_coef"}},
    {"mt5",
     {"model_type", "architectures", "dropout_rate", "relative_attention_max_distance",
      "scale_decoder_outputs"}},
};

models::ModelConfig golden_config(const std::string& name) {
  const fs::path older = folder_of(name) / "config_v4.json";
  const fs::path path = fs::exists(older) ? older : folder_of(name) / "config.json";
  return models::parse_config(base::read_text_file(path), path.string());
}

class GgufImport : public ::testing::TestWithParam<Converted> {};

TEST_P(GgufImport, HasTheWeightsOfTheFolder) {
  const GgufWeights weights(converted(GetParam().name));
  const formats::TensorIndex golden(folder_of(GetParam().name));
  std::set<std::string> names;
  for (const SourceTensor& tensor : weights.tensors()) {
    names.insert(tensor.name);
    EXPECT_EQ(tensor.shape, golden.at(tensor.name).info->shape) << tensor.name;
    const std::vector<float> expected = golden_values(golden, tensor.name);
    for (const int64_t piece : {int64_t{1}, int64_t{3}, tensor.rows()}) {
      const std::vector<float> values = imported(weights, tensor, piece);
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_LE(std::abs(values[i] - expected[i]), GetParam().tolerance)
            << tensor.name << " " << i << " in pieces of " << piece;
    }
    EXPECT_EQ(tensor.dtype, DType::f32);
    if (!tensor.is_stored_so) continue;
    std::vector<float> copied(static_cast<size_t>(tensor.elements()));
    weights.copy(tensor, 0, std::as_writable_bytes(std::span(copied)));
    EXPECT_EQ(copied, expected) << tensor.name;
  }
  for (const models::Weight& weight :
       models::file_weights_of(models::stack_of(golden_config(GetParam().name))))
    EXPECT_TRUE(names.contains(weight.name)) << weight.name;
}

void expect_settings(const GgufWeights& weights, const json& expected,
                     const std::set<std::string>& lost) {
  const json found = models::describe(models::parse_config(weights.config().dump(), "config.json"));
  for (const auto& [key, value] : expected.items()) {
    if (lost.contains(key)) continue;
    if (key == "rope_scaling" && value.is_object()) {
      for (const auto& [inner, number] : value.items())
        if (number.is_number() && found[key].contains(inner))
          EXPECT_NEAR(found[key][inner].get<double>(), number.get<double>(), 1e-6) << inner;
        else
          EXPECT_EQ(found[key].value(inner, json()), number) << inner;
      continue;
    }
    if (value.is_number_float())
      EXPECT_NEAR(found.value(key, 0.0), value.get<double>(), 1e-6 * value.get<double>()) << key;
    else
      EXPECT_EQ(found.value(key, json()), value) << key;
  }
}

TEST_P(GgufImport, HasTheSettingsOfTheFolder) {
  expect_settings(GgufWeights(converted(GetParam().name)),
                  models::describe(golden_config(GetParam().name)), GetParam().lost);
}

INSTANTIATE_TEST_SUITE_P(OfTheConverter, GgufImport, ::testing::ValuesIn(kConverted),
                         [](const auto& instance) { return instance.param.name; });

// The model's file in fp32 by the table that exports use, too, with the weights in `weights`.
fs::path write_gguf(const fs::path& weights, models::ModelConfig config, const fs::path& path) {
  if (config.relative_distance != 0) config.relative_distance = 128;  // the one that files have
  const models::GgufModel model = models::gguf_model(config, models::describe(config));
  formats::Metadata metadata = model.hyper_parameters;
  metadata.set("general.architecture", model.architecture);
  const formats::TensorIndex golden(weights);
  for (const models::GgufNumbers& numbers : model.numbers) {
    std::vector<float> values;
    for (const std::string& name : numbers.sources)
      values.push_back(golden_values(golden, name).front());
    metadata.set(numbers.key, values);
  }
  std::vector<formats::GgufTensorSpec> specs;
  for (const models::GgufTensor& tensor : model.tensors)
    specs.push_back({tensor.name, tensor.shape, GgmlType::f32});
  formats::GgufWriter writer(path, metadata, specs);
  for (const models::GgufTensor& tensor : model.tensors) {
    std::vector<float> all = tensor.values;
    for (const models::GgufPart& part : tensor.parts) {
      std::vector<float> values(static_cast<size_t>(part.elements()));
      models::gather_slabs(part, 0, models::slabs_of(part).count,
                           golden_values(golden, part.source), 0, values);
      for (const float value : values)
        all.push_back(tensor.is_rate ? -std::exp(value) : (value + tensor.added) * tensor.factor);
    }
    writer.write(std::as_bytes(std::span(all)));
  }
  writer.finish();
  return path;
}

void expect_weights(const GgufWeights& weights, const fs::path& expected_in, float tolerance) {
  const formats::TensorIndex golden(expected_in);
  for (const SourceTensor& tensor : weights.tensors()) {
    const std::vector<float> expected = golden_values(golden, tensor.name);
    const std::vector<float> values = imported(weights, tensor, 2);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_LE(std::abs(values[i] - expected[i]),
                tolerance * std::max(1.0F, std::abs(expected[i])))
          << tensor.name;
  }
}

// Forms that the converter does not write, or not with these settings.
TEST(GgufWeights, ComeBackFromTheTableOfExports) {
  const TemporaryFolder folder;
  for (const std::string name :
       {"basic", "grouped_tied", "head_dim", "rope_linear", "mistral", "gemma", "phi3",
        "phi3_short", "gpt_neox_in_turn", "falcon", "t5", "t5_gated", "mt5"}) {
    if (!fs::exists(folder_of(name) / "config.json")) continue;
    SCOPED_TRACE(name);
    const GgufWeights weights(
        write_gguf(folder_of(name), golden_config(name), folder / (name + ".gguf")));
    const bool is_exact = name != "gemma" && name != "t5";  // norms plus one, and scaled
    expect_weights(weights, folder_of(name), is_exact ? 0.0F : 2e-7F);
  }
}

// What llama.cpp does not compute is changed in config.json.
TEST(GgufWeights, OfNewerFamiliesComeBackWithTheirSettings) {
  const json without_window = {{"sliding_window", nullptr}, {"layer_types", nullptr}};
  const json rope = {{"rope_type", "default"}, {"rope_theta", 20.0}};
  const json one_theta = {
      {"rope_parameters", {{"full_attention", rope}, {"sliding_attention", rope}}}};
  const std::map<std::string, json> families{
      {"apertus", {{"rope_parameters", rope}}},  // two divisors do not tell a scaling
      {"cohere2", json::object()},
      {"ernie4_5", {{"use_bias", false}}},
      {"exaone4", without_window},
      {"gemma4", json::object()},
      {"glm4", json::object()},
      {"glm4_moe", {{"n_group", 1}, {"topk_group", 1}}},
      {"granite", json::object()},
      {"granitemoe", json::object()},
      {"hunyuan", {{"attention_bias", false}}},
      {"lfm2", json::object()},
      {"ministral3", json::object()},
      {"olmo3", one_theta},
      {"seed_oss", {{"attention_out_bias", false}, {"mlp_bias", false}}},
      {"smollm3",
       {{"no_rope_layers", {1, 1}}, {"use_sliding_window", false}, {"layer_types", nullptr}}},
      {"stablelm_12b", json::object()}};
  const TemporaryFolder folder;
  for (const auto& [name, changes] : families) {
    SCOPED_TRACE(name);
    json changed = base::read_json_file(folder_of(name) / "config.json");
    changed.update(changes);
    const models::ModelConfig config = models::parse_config(changed.dump(), name);
    const GgufWeights weights(write_gguf(folder_of(name), config, folder / (name + ".gguf")));
    expect_weights(weights, folder_of(name), 0.0F);
    // The share of a head that is rotated is kept as a number of elements.
    std::set<std::string> lost{"partial_rotary_factor"};
    if (name.starts_with("gemma4")) lost.insert("rope_parameters");
    expect_settings(weights, models::describe(config), lost);
  }
}

// A folder with the model's weights, each element another number.
fs::path write_counted(const models::ModelConfig& config, const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<formats::TensorSpec> specs;
  const std::vector<models::Weight> weights = models::file_weights_of(models::stack_of(config));
  specs.reserve(weights.size());
  for (const models::Weight& weight : weights) {
    std::vector<int64_t> shape;
    for (int axis = 0; axis < weight.shape.rank(); ++axis) shape.push_back(weight.shape[axis]);
    specs.push_back({weight.name, DType::f32, std::move(shape)});
  }
  formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
  float next = 1.0F;
  for (const models::Weight& weight : weights) {
    std::vector<float> values(static_cast<size_t>(weight.shape.elements()));
    for (float& value : values) value = (next += 1.0F) / 1024.0F;
    writer.write(weight.name, values.data(), std::ssize(values) * int64_t{sizeof(float)});
  }
  writer.finish();
  return folder;
}

// States of llama.cpp are square, and those of the golden are not.
TEST(GgufWeights, OfGatedDeltaNetsComeBack) {
  // The value heads 0 and 1 share key head 0: in files of qwen35 0 and 2 come first.
  const std::map<std::string, std::vector<size_t>> orders{
      {"qwen3_5", {0, 2, 1, 3}}, {"qwen3_5_moe", {0, 2, 1, 3}}, {"qwen3_next", {0, 1, 2, 3}}};
  for (const auto& [name, heads] : orders) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    json changed = base::read_json_file(folder_of(name) / "config.json");
    changed["linear_value_head_dim"] = changed["linear_key_head_dim"];
    changed["mlp_only_layers"] = json::array();
    const models::ModelConfig config = models::parse_config(changed.dump(), "config.json");
    const fs::path counted = write_counted(config, folder / "counted");
    const GgufWeights weights(write_gguf(counted, config, folder / "x.gguf"));
    expect_weights(weights, counted, 2e-7F);
    expect_settings(weights, models::describe(config), {"partial_rotary_factor"});
    const GgufFile file(folder / "x.gguf");
    std::vector<float> rates(4);
    file.read_range(*file.find("blk.0.ssm_a"), 0, std::as_writable_bytes(std::span(rates)));
    const std::vector<float> logarithms =
        golden_values(formats::TensorIndex(counted), "model.layers.0.linear_attn.A_log");
    for (size_t place = 0; place < heads.size(); ++place)
      EXPECT_FLOAT_EQ(rates[place], -std::exp(logarithms[heads[place]]));
  }
}

// The golden's only layer has no window, and llama.cpp has models with such layers alone.
TEST(GgufWeights, OfExpertsNextToAnMlpComeBack) {
  const TemporaryFolder folder;
  json changed = base::read_json_file(folder_of("gemma4_moe") / "config.json");
  const auto refusal = [&] { models::gguf_model(golden_config("gemma4_moe"), changed); };
  EXPECT_TRUE(contains(user_error_of(refusal), "layer_types"));
  changed["num_hidden_layers"] = 2;
  changed["layer_types"] = {"sliding_attention", "full_attention"};
  changed["per_layer_config"] = {{"1", changed["per_layer_config"]["0"]}};
  const models::ModelConfig config = models::parse_config(changed.dump(), "config.json");
  const fs::path counted = write_counted(config, folder / "counted");
  const GgufWeights weights(write_gguf(counted, config, folder / "x.gguf"));
  expect_weights(weights, counted, 0.0F);
  expect_settings(weights, models::describe(config), {"rope_parameters"});
  const GgufFile file(folder / "x.gguf");
  for (const char* name : {"blk.1.ffn_down_exps.scale", "blk.1.ffn_gate_inp.scale"})
    EXPECT_EQ(file.find(name)->shape.size(), 1U);
  EXPECT_EQ(file.find("blk.0.ffn_gate_up_exps.weight")->shape, (std::vector<int64_t>{4, 6, 6}));
}

// Files of published folders hold keys of layers that read another's. llama.cpp's second table has
// as many rows as the first.
TEST(GgufWeights, OfLayersThatShareKeysComeBack) {
  const TemporaryFolder folder;
  json changed = base::read_json_file(folder_of("gemma4_sharing") / "config.json");
  const auto refusal = [&] { models::gguf_model(golden_config("gemma4_sharing"), changed); };
  EXPECT_TRUE(contains(user_error_of(refusal), "vocab_size_per_layer_input"));
  changed["vocab_size_per_layer_input"] = changed["vocab_size"];
  const models::ModelConfig config = models::parse_config(changed.dump(), "config.json");
  const fs::path counted = write_counted(config, folder / "counted");
  GgufFileChanges changes{GgufFile(write_gguf(counted, config, folder / "x.gguf"))};
  changes.add("blk.3.attn_k.weight", 60);
  const GgufWeights weights(changes.write(folder / "more.gguf"));
  expect_weights(weights, counted, 0.0F);
  expect_settings(weights, models::describe(config), {"rope_parameters"});
  changes.add("blk.1.attn_other.weight", 60);
  const fs::path other = changes.write(folder / "other.gguf");
  EXPECT_TRUE(contains(user_error_of([&] { const GgufWeights none(other); }), "attn_other"));
}

std::string refusal_of(const std::string& name,
                       const std::function<void(GgufFileChanges&)>& change) {
  const TemporaryFolder folder;
  GgufFileChanges changed{GgufFile(converted(name))};
  change(changed);
  const fs::path path = changed.write(folder / "x.gguf");
  const std::string error = user_error_of([&] {
    const GgufWeights weights(path);
    for (const SourceTensor& tensor : weights.tensors()) imported(weights, tensor, tensor.rows());
  });
  EXPECT_TRUE(error == "(no error)" || contains(error, path.string()));
  return error;
}
std::string refusal_of_value(const std::string& key, formats::MetadataValue value) {
  return refusal_of("biases",
                    [&](GgufFileChanges& file) { file.metadata.set(key, std::move(value)); });
}

TEST(GgufWeights, RefusesWhatIsNoModel) {
  const auto of = [](const std::string& key, const char* value) {
    return refusal_of_value(key, std::string(value));
  };
  EXPECT_TRUE(contains(of("general.type", "adapter"), "a LoRA adapter in GGUF"));
  EXPECT_TRUE(contains(of("general.type", "mmproj"), "the encoder of images"));
  EXPECT_TRUE(contains(of("general.architecture", "clip"), "the encoder of images"));
  EXPECT_TRUE(contains(of("general.architecture", "rwkv6"),
                       "architecture is 'rwkv6', of which Snug has no family; it has llama, "));
  EXPECT_TRUE(contains(of("general.architecture", "\xff\x1b[31m"), "no family"));
  EXPECT_TRUE(contains(refusal_of("biases",
                                  [](GgufFileChanges& file) {
                                    file.tensors.clear();
                                    file.data.clear();
                                  }),
                       "holds a vocabulary alone"));
}

TEST(GgufWeights, RefusesTensorsThatAreNotThoseOfTheModel) {
  EXPECT_TRUE(contains(
      refusal_of("biases", [](GgufFileChanges& file) { file.remove("blk.1.ffn_up.weight"); }),
      "there is no tensor 'blk.1.ffn_up.weight'"));
  EXPECT_TRUE(contains(
      refusal_of("biases", [](GgufFileChanges& file) { file.add("blk.0.attn_q_norm.weight", 6); }),
      "tensor 'blk.0.attn_q_norm.weight' is no part of a llama"));
  EXPECT_TRUE(contains(refusal_of("biases",
                                  [](GgufFileChanges& file) {
                                    auto& shape =
                                        file.tensors[file.index_of("blk.0.attn_v.weight")].shape;
                                    std::swap(shape[0], shape[1]);
                                  }),
                       "tensor 'blk.0.attn_v.weight' is [36, 18] of f32; expected values of [18, "
                       "36], as the metadata say"));
  EXPECT_TRUE(contains(refusal_of("biases",
                                  [](GgufFileChanges& file) {
                                    file.tensors[file.index_of("blk.0.attn_v.weight")].type =
                                        GgmlType::i32;
                                  }),
                       "of i32; expected values"));
  EXPECT_TRUE(contains(refusal_of("biases",
                                  [](GgufFileChanges& file) {
                                    const float nan = std::numeric_limits<float>::quiet_NaN();
                                    auto& data = file.data[file.index_of("blk.1.ffn_up.weight")];
                                    std::memcpy(data.data() + 40, &nan, 4);
                                  }),
                       "tensor 'blk.1.ffn_up.weight' has a value that is not finite"));
}

TEST(GgufWeights, RefusesSettingsThatNoModelHas) {
  EXPECT_TRUE(contains(refusal_of_value("llama.block_count", 0x7fffffffU),
                       "the metadata's llama.block_count is 2147483647; expected 1 to 1024"));
  EXPECT_TRUE(contains(refusal_of_value("llama.block_count", std::string("2")),
                       "llama.block_count is not an integer"));
  EXPECT_TRUE(contains(refusal_of_value("llama.attention.head_count", 0U), "is 0; expected 1"));
  EXPECT_TRUE(contains(refusal_of_value("llama.attention.head_count", std::vector<int32_t>{6, 3}),
                       "differs from layer to layer"));
  EXPECT_TRUE(contains(refusal_of_value("llama.attention.layer_norm_rms_epsilon",
                                        std::numeric_limits<float>::quiet_NaN()),
                       "is not a finite number"));
  EXPECT_TRUE(contains(refusal_of_value("llama.rope.dimension_count", 4U),
                       "is 4 of the 6 elements of a head"));
  EXPECT_TRUE(contains(refusal_of_value("llama.rope.scaling.type", std::string("longrope")),
                       "is 'longrope'; Snug's llama has none, linear and yarn"));
  EXPECT_TRUE(contains(refusal_of_value("llama.context_length", uint64_t{1} << 63), "integer"));
}

TEST(GgufWeights, TakesWhatOlderConvertersWrote) {
  // Integers of other widths, a size for each layer, the older name of linear scaling.
  EXPECT_EQ(refusal_of_value("llama.block_count", uint64_t{2}), "(no error)");
  EXPECT_EQ(refusal_of_value("llama.attention.head_count_kv", std::vector<int32_t>{3, 3}),
            "(no error)");
  EXPECT_EQ(refusal_of_value("llama.rope.scale_linear", 2.5F), "(no error)");
  // Frequencies that nothing divides.
  EXPECT_EQ(refusal_of("biases",
                       [](GgufFileChanges& file) {
                         file.add("rope_freqs.weight", 3);
                         for (size_t i = 0; i < 3; ++i) {
                           const float one = 1;
                           std::memcpy(file.data.back().data() + 4 * i, &one, 4);
                         }
                       }),
            "(no error)");
}

// Of a file in 16 bits, matrices are copied as they are; norms, which are in 32 bits there, become
// the folder's type.
TEST(GgufWeights, HaveTheTypeOfMostValues) {
  for (const auto& [name, dtype, text] :
       {std::tuple{"qwen2", DType::f16, "float16"}, std::tuple{"qwen3", DType::bf16, "bfloat16"}}) {
    const GgufWeights weights(converted(name));
    EXPECT_EQ(weights.config()["torch_dtype"], text);
    const formats::TensorIndex golden(folder_of(name));
    for (const SourceTensor& tensor : weights.tensors()) {
      EXPECT_EQ(tensor.dtype, dtype);
      const bool is_matrix = tensor.shape.size() == 2;
      EXPECT_EQ(tensor.is_stored_so, is_matrix) << tensor.name;
      const std::vector<float> expected = golden_values(golden, tensor.name);
      const std::vector<float> values = imported(weights, tensor, tensor.rows());
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_LE(std::abs(values[i] - expected[i]),
                  is_matrix ? std::abs(expected[i]) / 256 + 1e-7F : 0.0F)
            << tensor.name;
    }
  }
}

TEST(Llama3Scaling, IsFoundFromItsDivisors) {
  struct Published {
    double theta, factor, low, high;
    int64_t original;
    size_t pairs;
  };
  for (const Published& model :
       {Published{5e5, 8, 1, 4, 8192, 64}, Published{5e5, 32, 1, 4, 8192, 32},
        Published{1e4, 8, 1, 4, 4096, 64}, Published{5e5, 8, 2, 6, 10000, 64},
        Published{1e6, 16, 1, 1.5, 8192, 40}}) {
    models::Rotary rotary;
    rotary.width = static_cast<int64_t>(2 * model.pairs);
    rotary.rope.theta = model.theta;
    const std::vector<float> plain = models::inverse_frequencies(rotary);
    rotary.rope.scaling = models::RopeScaling::llama3;
    rotary.rope.factor = model.factor;
    rotary.rope.low_freq_factor = model.low;
    rotary.rope.high_freq_factor = model.high;
    rotary.rope.original_max_position = model.original;
    std::vector<float> divisors = plain;
    const std::vector<float> scaled = models::inverse_frequencies(rotary);
    for (size_t i = 0; i < divisors.size(); ++i) divisors[i] /= scaled[i];
    const auto found = models::llama3_scaling(divisors, model.theta);
    ASSERT_TRUE(found) << model.original;
    EXPECT_EQ(found->factor, model.factor);
    rotary.rope = *found;
    const std::vector<float> again = models::inverse_frequencies(rotary);
    for (size_t i = 0; i < again.size(); ++i) EXPECT_NEAR(again[i] / scaled[i], 1, 3e-5);
    if (model.high == 4 && model.original == 8192) {
      EXPECT_EQ(found->original_max_position, 8192);
    }
  }
  EXPECT_FALSE(models::llama3_scaling({1, 2, 1, 8, 4}, 1e4));
}

// As files of Mixtral made before April 2024 have them.
void put_experts_apart(GgufFileChanges& file) {
  for (size_t i = file.tensors.size(); i-- > 0;) {
    const formats::GgufTensorSpec stack = file.tensors[i];
    const size_t place = stack.name.find("_exps.");
    if (place == std::string::npos) continue;
    const std::vector<std::byte> bytes = file.data[i];
    file.remove(stack.name);
    const size_t one = bytes.size() / static_cast<size_t>(stack.shape[0]);
    for (size_t e = 0; e < static_cast<size_t>(stack.shape[0]); ++e) {
      std::string name = stack.name;
      name.replace(place, 6, fmt::format(".{}.", e));
      file.tensors.push_back({name, {stack.shape[1], stack.shape[2]}, stack.type});
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(e * one);
      file.data.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(one));
    }
  }
}

TEST(GgufWeights, ReadsATensorForEachExpert) {
  const TemporaryFolder folder;
  GgufFileChanges file{GgufFile(converted("mixtral"))};
  put_experts_apart(file);
  const GgufWeights weights(file.write(folder / "x.gguf"));
  const formats::TensorIndex golden(folder_of("mixtral"));
  EXPECT_EQ(weights.tensors().size(), golden.tensors().size());
  for (const SourceTensor& tensor : weights.tensors())
    EXPECT_EQ(imported(weights, tensor, 3), golden_values(golden, tensor.name)) << tensor.name;
  const std::string removed = "blk.1.ffn_up.1.weight";
  file.remove(removed);
  EXPECT_TRUE(contains(user_error_of([&] { GgufWeights(file.write(folder / "y.gguf")); }),
                       "there is no tensor '" + removed + "'"));
}

}  // namespace
}  // namespace snug::convert
