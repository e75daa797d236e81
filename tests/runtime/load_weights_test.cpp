#include "runtime/loading/load_weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "base/temporary_folder.h"
#include "formats/folder/safetensors_file.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "formats/quantization/quant_state.h"
#include "golden_tensors.h"
#include "program/kinds/transfer/storage.h"
#include "runtime/loading/stored_weight.h"
#include "runtime/saving/save_model.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::TensorSpec;
using testing::contains;
using testing::golden;
using testing::golden_config;
using testing::specs_of;
using testing::stored;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

TEST(LoadWeights, ReadsTheSameTypeBitForBit) {
  for (const char* name : {"basic", "grouped_tied", "biases", "head_dim"}) {
    SCOPED_TRACE(name);
    const models::ModelConfig config = golden_config(name);
    TinyRun run({.model = config});
    const LoadReport report = load_weights(golden(name) / "model", config, run.executor());
    const formats::TensorIndex index(golden(name) / "model");
    EXPECT_EQ(report.bytes_read, index.total_bytes());
    EXPECT_GT(report.seconds, 0.0);
    for (const models::Weight& weight : models::weights_of(config))
      EXPECT_TRUE(run.bytes(weight.name) == stored(index, weight.name)) << weight.name;
    EXPECT_EQ(run.floats("inverse_frequencies"), models::inverse_frequencies(config));
  }
}

// Of one tensor that is both, safetensors may have kept the head's name.
TEST(LoadWeights, AnEmbeddingThatFilesHoldAsTheHeadIsFound) {
  const models::ModelConfig config = golden_config("grouped_tied");
  const formats::TensorIndex given(golden("grouped_tied") / "model");
  const auto renamed = [](const std::string& name) {
    return name == "model.embed_tokens.weight" ? std::string("lm_head.weight") : name;
  };
  const TemporaryFolder folder;
  std::vector<TensorSpec> specs;
  for (const formats::IndexedTensor& tensor : given.tensors())
    specs.push_back({renamed(tensor.info->name), *tensor.info->dtype, tensor.info->shape});
  formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
  for (const formats::IndexedTensor& tensor : given.tensors()) {
    const std::string bytes = stored(given, tensor.info->name);
    writer.write(renamed(tensor.info->name), bytes.data(), std::ssize(bytes));
  }
  writer.finish();
  TinyRun run({.model = config});
  load_weights(folder.path(), config, run.executor());
  for (const models::Weight& weight : models::weights_of(config))
    EXPECT_TRUE(run.bytes(weight.name) == stored(given, weight.name)) << weight.name;
}

TEST(LoadWeights, WidensShardedHalfPrecisionExactly) {
  for (const char* name : {"sharded_fp16", "sharded_bf16"}) {
    SCOPED_TRACE(name);
    const models::ModelConfig config = golden_config(name);
    TinyRun run({.model = config});
    load_weights(golden(name) / "model", config, run.executor());
    const formats::SafetensorsFile file(golden(name) / "golden.safetensors");
    const formats::TensorInfo& info = file.at("weight.model.embed_tokens.weight");
    std::string expected(static_cast<size_t>(info.bytes()), '\0');
    file.read(info, expected.data());
    EXPECT_TRUE(run.bytes("model.embed_tokens.weight") == expected);
  }
}

TEST(LoadWeights, ReadsBf16StraightAndRoundsOthersToNearest) {
  const models::ModelConfig config = golden_config("sharded_bf16");
  TinyRun run({.model = config, .method = formats::Method::lora, .compute = DType::bf16});
  load_weights(golden("sharded_bf16") / "model", config, run.executor());
  const formats::TensorIndex index(golden("sharded_bf16") / "model");
  for (const models::Weight& weight : models::weights_of(config))
    EXPECT_TRUE(run.bytes(weight.name) == stored(index, weight.name)) << weight.name;

  const models::ModelConfig wide = golden_config("basic");
  TinyRun rounded({.model = wide, .method = formats::Method::lora, .compute = DType::bf16});
  load_weights(golden("basic") / "model", wide, rounded.executor());
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  const std::string bytes = stored(formats::TensorIndex(golden("basic") / "model"), name);
  const std::vector<float> loaded = rounded.floats(name);
  for (size_t i = 0; i < loaded.size(); ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    ASSERT_EQ(loaded[i], base::to_float(base::to_bfloat16(value))) << i;
  }
}

TEST(LoadWeights, FillsTheMasterThatPrepareCasts) {
  const models::ModelConfig config = golden_config("basic");
  TinyRun run({.model = config, .compute = DType::bf16});
  load_weights(golden("basic") / "model", config, run.executor());
  run.executor().run(program::ProgramName::prepare);
  const formats::TensorIndex index(golden("basic") / "model");
  for (const models::Weight& weight : models::weights_of(config)) {
    EXPECT_TRUE(run.bytes("master." + weight.name) == stored(index, weight.name)) << weight.name;
    const auto master = run.floats("master." + weight.name);
    const auto cast = run.floats(weight.name);
    for (size_t i = 0; i < master.size(); ++i)
      ASSERT_EQ(cast[i], base::to_float(base::to_bfloat16(master[i]))) << weight.name << " " << i;
  }
}

TEST(LoadWeights, StreamsTensorsLargerThanASlotOnTwoThreads) {
  TemporaryFolder folder;
  models::ModelConfig config = testing::tiny_model();
  config.hidden_size = 16;
  config.tied_embeddings = true;
  config.num_layers = 1;
  // 4.5 million fp32 elements: four slots and a half, at an odd boundary.
  config.vocab_size = 282'347;
  std::vector<TensorSpec> specs;
  for (const auto& [name, spec] : specs_of(config)) specs.push_back(spec);
  {
    formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
    for (const TensorSpec& spec : specs) {
      std::vector<float> values(static_cast<size_t>(spec.bytes() / 4));
      std::iota(values.begin(), values.end(), -1000.0F);
      writer.write(spec.name, values.data(), spec.bytes());
    }
    writer.finish();
  }
  TinyRun run({.model = config, .method = formats::Method::lora, .compute = DType::bf16});
  load_weights(folder.path(), config, run.executor());
  const std::vector<float> loaded = run.floats("model.embed_tokens.weight");
  for (size_t i = 0; i < loaded.size(); ++i)
    ASSERT_EQ(loaded[i], base::to_float(base::to_bfloat16(static_cast<float>(i) - 1000.0F))) << i;
}

// Every part lies in memory as bitsandbytes stored it; the offset is the number in its JSON.
TEST(LoadWeights, ReadsStoredNf4BitForBit) {
  for (const char* name : {"plain", "double"}) {
    SCOPED_TRACE(name);
    const fs::path folder = golden("nf4") / name;
    const models::ModelConfig config = models::find_model(folder.string()).config;
    ASSERT_TRUE(config.stored);
    TinyRun run({.model = config,
                 .method = formats::Method::lora,
                 .compute = DType::bf16,
                 .quantization = {{.nested = config.stored->double_quant, .kept = {}}}});
    const LoadReport report = load_weights(folder, config, run.executor());
    const formats::TensorIndex index(folder);
    EXPECT_LE(report.bytes_read, index.total_bytes());
    int64_t linears = 0;
    for (const models::Weight& weight : models::weights_of(config)) {
      if (!weight.is_linear()) continue;
      ++linears;
      const StoredWeight loaded = stored_weight(run.executor(), weight.name);
      EXPECT_TRUE(run.bytes(loaded.codes) == stored(index, weight.name)) << weight.name;
      EXPECT_TRUE(run.bytes(loaded.absmax) == stored(index, weight.name + ".absmax"));
      ASSERT_EQ(loaded.nested(), config.stored->double_quant);
      if (!loaded.nested()) continue;
      EXPECT_TRUE(run.bytes(loaded.nested_absmax) == stored(index, weight.name + ".nested_absmax"));
      EXPECT_TRUE(run.bytes(loaded.nested_map) == stored(index, weight.name + ".nested_quant_map"));
      const auto part = formats::find_nf4(index, weight.name, dims_of(weight.shape));
      ASSERT_TRUE(part);
      EXPECT_EQ(run.floats(loaded.nested_offset)[0], part->state.nested_offset);
    }
    EXPECT_EQ(linears, 7 * config.num_layers);
  }
}

// A scale that is no number would show as a loss that is none, a step later.
TEST(LoadWeights, RefusesStoredScalesThatAreNotFinite) {
  const std::pair<const char*, const char*> scales[] = {{"plain", ".absmax"},
                                                        {"double", ".nested_absmax"}};
  for (const auto& [name, suffix] : scales) {
    SCOPED_TRACE(name);
    TemporaryFolder folder;
    const fs::path copy = folder / "model";
    fs::copy(golden("nf4") / name, copy, fs::copy_options::recursive);
    const std::string tensor = std::string("model.layers.1.mlp.up_proj.weight") + suffix;
    std::fstream file(copy / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const size_t at = bytes.find(stored(formats::TensorIndex(copy), tensor));
    ASSERT_NE(at, std::string::npos);
    const float infinity = std::numeric_limits<float>::infinity();
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(&infinity), sizeof infinity);
    file.close();
    const models::ModelConfig config = models::find_model(copy.string()).config;
    TinyRun run({.model = config,
                 .method = formats::Method::lora,
                 .compute = DType::bf16,
                 .quantization = {{.nested = config.stored->double_quant, .kept = {}}}});
    const std::string text = user_error_of([&] { load_weights(copy, config, run.executor()); });
    EXPECT_TRUE(contains(text, tensor)) << text;
    EXPECT_TRUE(contains(text, "infinity or NaN at [0]")) << text;
  }
}

// Both readers come to wait for the same tensor's buffer of scales; only one may take its piece.
TEST(LoadWeights, QuantisesManySmallTensorsOnTwoThreads) {
  TemporaryFolder folder;
  models::ModelConfig config = testing::tiny_model();
  config.hidden_size = 128;
  config.intermediate_size = 384;
  config.num_heads = config.num_kv_heads = 4;
  config.head_dim = 32;
  config.num_layers = 12;
  std::vector<TensorSpec> specs;
  for (const auto& [name, spec] : specs_of(config)) specs.push_back(spec);
  {
    formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
    for (const TensorSpec& spec : specs) {
      std::vector<float> values(static_cast<size_t>(spec.bytes() / 4));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<float>(i % 9973)) + static_cast<float>(i % 64);
      writer.write(spec.name, values.data(), spec.bytes());
    }
    writer.finish();
  }
  TinyRun run({.model = config, .method = formats::Method::lora, .quantization = {{}}});
  const auto codes = [&](int layer, const char* linear) {
    const std::string name = fmt::format("model.layers.{}.mlp.{}.weight", layer, linear);
    const StoredWeight stored = stored_weight(run.executor(), name);
    return run.bytes(stored.codes) + run.bytes(stored.absmax);
  };
  for (int load = 0; load < 20; ++load) {
    load_weights(folder.path(), config, run.executor());
    const std::string expected = codes(0, "gate_proj");
    for (int layer = 0; layer < 12; ++layer)
      for (const char* linear : {"gate_proj", "up_proj", "down_proj"})
        ASSERT_EQ(codes(layer, linear), expected) << layer << linear << " in load " << load;
  }
}

// A folder with the tensors of tiny_model() in fp32, after `change` had its way with them.
class LoadErrors : public ::testing::Test {
 protected:
  using Specs = std::map<std::string, TensorSpec>;

  std::string message(const std::function<void(Specs&)>& change) {
    const models::ModelConfig config = testing::tiny_model();
    Specs specs = specs_of(config);
    change(specs);
    write(specs);
    TinyRun run({.model = config});
    run.scribble({"model.embed_tokens.weight"}, 7);
    const std::string before = run.bytes("model.embed_tokens.weight");
    const std::string text =
        user_error_of([&] { load_weights(folder_.path(), config, run.executor()); });
    EXPECT_TRUE(run.bytes("model.embed_tokens.weight") == before) << "data was read";
    return text;
  }

  void write(const Specs& specs) {
    std::vector<TensorSpec> list;
    for (const auto& [name, spec] : specs) list.push_back(spec);
    formats::SafetensorsWriter writer(folder_ / "model.safetensors", list);
    for (const TensorSpec& spec : list) {
      const std::string zeros(static_cast<size_t>(spec.bytes()), '\0');
      writer.write(spec.name, zeros.data(), spec.bytes());
    }
    writer.finish();
  }

  TemporaryFolder folder_;
};

TEST_F(LoadErrors, MissingTensorNamesItAndHowManyMore) {
  const std::string text = message([](Specs& specs) {
    specs.erase("model.layers.0.mlp.up_proj.weight");
    specs.erase("model.norm.weight");
  });
  EXPECT_TRUE(contains(text, "'model.layers.0.mlp.up_proj.weight' is missing and 1 more"));
  EXPECT_TRUE(contains(text, folder_.path().string()));
  EXPECT_TRUE(contains(text, "nearest"));
}

TEST_F(LoadErrors, MissingHeadPointsAtTiedEmbeddings) {
  const std::string text = message([](Specs& specs) { specs.erase("lm_head.weight"); });
  EXPECT_TRUE(contains(text, "'lm_head.weight' is missing"));
  EXPECT_TRUE(contains(text, "tie_word_embeddings"));
}

TEST_F(LoadErrors, SurplusTensorIsNotLeftOutInSilence) {
  const std::string text = message([](Specs& specs) {
    specs["model.layers.0.self_attn.q_proj.bias"] = {
        "model.layers.0.self_attn.q_proj.bias", DType::f32, {12}};
  });
  EXPECT_TRUE(contains(text, "model.safetensors: tensor 'model.layers.0.self_attn.q_proj.bias'"));
  EXPECT_TRUE(contains(text, "attention_bias"));
}

TEST_F(LoadErrors, IgnorableTensorsAreSkipped) {
  const std::string name = "model.layers.0.self_attn.rotary_emb.inv_freq";
  const models::ModelConfig config = testing::tiny_model();
  Specs specs = specs_of(config);
  specs[name] = {name, DType::i64, {2}};
  write(specs);
  TinyRun run({.model = config});
  EXPECT_NO_THROW(load_weights(folder_.path(), config, run.executor()));
}

TEST_F(LoadErrors, WrongShapeShowsBoth) {
  const std::string text = message([](Specs& specs) {
    specs["model.layers.1.self_attn.k_proj.weight"].shape = {12, 4};
  });
  EXPECT_TRUE(contains(text, "'model.layers.1.self_attn.k_proj.weight' has shape [12, 4]"));
  EXPECT_TRUE(contains(text, "expected [4, 12], as config.json says"));
}

TEST_F(LoadErrors, WrongNumberOfDimensions) {
  const std::string text = message([](Specs& specs) {
    specs["model.norm.weight"].shape = {1, 12};
  });
  EXPECT_TRUE(contains(text, "has shape [1, 12]; expected [12]"));
}

TEST_F(LoadErrors, MissingVocabularyRowsAreExplained) {
  const std::string text = message([](Specs& specs) {
    specs["model.embed_tokens.weight"].shape = {27, 12};
  });
  EXPECT_TRUE(contains(text, "has 27 rows; expected 29"));
  EXPECT_TRUE(contains(text, "vocab_size"));
}

TEST_F(LoadErrors, UnsupportedElementTypes) {
  const std::string text =
      message([](Specs& specs) { specs["model.norm.weight"].dtype = DType::i64; });
  EXPECT_TRUE(contains(text, "'model.norm.weight' is stored as I64; expected F32, BF16, F16"));
}

// Plans ask the files how wide their elements are, whatever config.json says of all.
TEST_F(LoadErrors, AFileThatChangedSinceThePlanWasMade) {
  const auto is_norm = [](const std::string& name) { return name.ends_with("norm.weight"); };
  Specs specs = specs_of(testing::tiny_model());
  for (auto& [name, spec] : specs)
    if (!is_norm(name)) spec.dtype = DType::bf16;
  write(specs);
  folder_.write("config.json", config_json(testing::tiny_model(), DType::bf16));
  const models::ModelConfig config = models::find_model(folder_.path().string()).config;
  EXPECT_EQ(config.file_width, 2);
  EXPECT_EQ(config.other_widths.size(), 5U);
  TinyRun run({.model = config});
  const program::Program& load = *run.job().find(program::ProgramName::load);
  int reads = 0;
  for (const program::Operation& operation : load.operations)
    if (const auto* read = operation.attributes.get_if<program::Read>()) {
      const std::string& name = load.tensor(id_of(operation, program::Read::kTensor)).name;
      EXPECT_EQ(read->file_width, is_norm(name) ? 4 : 2) << name;
      ++reads;
    }
  EXPECT_GT(reads, 5);
  EXPECT_NO_THROW(load_weights(folder_.path(), config, run.executor()));
  specs["model.norm.weight"].dtype = DType::bf16;
  write(specs);
  EXPECT_TRUE(
      contains(user_error_of([&] { load_weights(folder_.path(), config, run.executor()); }),
               "'model.norm.weight' has elements of 2 bytes in its file, and the plan was made"));
}

TEST_F(LoadErrors, Float8FromTheHeader) {
  formats::SafetensorsHeader header;
  for (const models::Weight& weight : models::weights_of(testing::tiny_model())) {
    const int64_t begin = header.data_bytes;
    header.data_bytes += weight.shape.elements();
    header.tensors.push_back(
        {weight.name, "F8_E4M3", {}, dims_of(weight.shape), begin, header.data_bytes});
  }
  folder_.write("model.safetensors", formats::make_safetensors_header(header) +
                                         std::string(static_cast<size_t>(header.data_bytes), '\0'));
  TinyRun run;
  const std::string text =
      user_error_of([&] { load_weights(folder_.path(), testing::tiny_model(), run.executor()); });
  EXPECT_TRUE(contains(text, "is stored as F8_E4M3"));
}

}  // namespace
}  // namespace snug::runtime
