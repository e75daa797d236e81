// snug quantize's work against folders that transformers quantised (tests/goldens/nf4).
#include "convert/folder/quantize_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "formats/folder/tensor_index.h"
#include "formats/quantization/nf4.h"
#include "formats/quantization/quant_state.h"
#include "models/weights.h"
#include "plan/job/storage_programs.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/stored_weight.h"
#include "runtime/tiny_run.h"

namespace snug::convert {
namespace {

using namespace runtime;  // NOLINT: the folders are loaded by it

namespace fs = std::filesystem;
using base::DType;
using testing::contains;
using testing::golden;
using testing::TemporaryFolder;
using testing::user_error_of;

FolderQuantizer quantizer_of(const fs::path& folder, const FolderQuantizeOptions& options = {}) {
  return {folder, options};
}

std::vector<std::byte> bytes_of(const formats::TensorIndex& index, const std::string& name) {
  const formats::IndexedTensor& tensor = index.at(name);
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.info->bytes()));
  index.read(tensor, bytes.data());
  return bytes;
}

void expect_same_tensors(const formats::TensorIndex& ours, const formats::TensorIndex& theirs) {
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const auto& tensor : theirs.tensors()) {
    const formats::TensorInfo& info = *tensor.info;
    ASSERT_NE(ours.find(info.name), nullptr) << info.name;
    EXPECT_EQ(ours.find(info.name)->info->stored_dtype, info.stored_dtype) << info.name;
    EXPECT_EQ(ours.find(info.name)->info->shape, info.shape) << info.name;
    EXPECT_EQ(bytes_of(ours, info.name), bytes_of(theirs, info.name)) << info.name;
  }
}

// A folder loaded for inference-like use: frozen weights in `compute`, linears as NF4, and so the
// weight named `head`, if any.
class Loaded {
 public:
  Loaded(const fs::path& folder, DType compute, bool double_quant, const std::string& head = "")
      : model_(models::find_model(folder.string()).config),
        run_({.model = model_,
              .method = formats::Method::lora,
              .compute = compute,
              .quantization = {{.nested = double_quant, .kept = {}, .head = head}}}) {
    load_weights(folder, model_, run_.executor());
  }

  const models::ModelConfig& model() const { return model_; }
  // All bytes of a weight, its scales included.
  std::string bytes(const std::string& name) {
    if (!is_stored_as_nf4(run_.executor(), name)) return run_.bytes(name);
    const StoredWeight stored = stored_weight(run_.executor(), name);
    std::string all;
    for (const backends::Buffer* part : {&stored.codes, &stored.absmax, &stored.nested_absmax,
                                         &stored.nested_map, &stored.nested_offset})
      if (part->data != nullptr) all += run_.bytes(*part);
    return all;
  }

 private:
  models::ModelConfig model_;
  testing::TinyRun run_;
};

// The value as the bytes of this type.
std::string stored_as(DType dtype, float value) {
  const auto bytes = [](const auto& number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  if (dtype == DType::f32) return bytes(value);
  if (dtype == DType::f64) return bytes(static_cast<double>(value) * (1 + 0x1p-30));
  if (dtype == DType::f16) return bytes(base::to_float16(value));
  return bytes(base::to_bfloat16(value));
}

// A model of one layer in this type, whose numbers no type of 16 bits holds exactly. Its linears
// are larger than a slot in fp32, and end in a partial block.
void write_wide_model(const TemporaryFolder& folder, DType dtype) {
  auto config = base::read_json_file(golden("basic") / "model/config.json");
  config["num_hidden_layers"] = 1;
  config["intermediate_size"] = 29129;
  folder.write("in/config.json", config.dump());
  const auto model = models::find_model((folder / "in").string());
  std::vector<formats::TensorSpec> specs;
  int64_t largest = 0;
  for (const auto& weight : models::weights_of(model.config)) {
    std::vector<int64_t> shape;
    for (int axis = 0; axis < weight.shape.rank(); ++axis) shape.push_back(weight.shape[axis]);
    specs.push_back({weight.name, dtype, shape});
    largest = std::max(largest, weight.shape.elements());
  }
  ASSERT_GT(largest * int64_t{sizeof(float)}, plan::kSlotBytes);
  ASSERT_NE(largest % formats::kNf4BlockSize, 0);
  std::string values;
  for (int64_t i = 0; i < largest; ++i)
    values += stored_as(dtype, std::sin(static_cast<float>(i % 99991)));
  formats::SafetensorsWriter writer(folder / "in/model.safetensors", specs);
  for (const auto& spec : specs) writer.write(spec.name, values.data(), spec.bytes());
  writer.finish();
}

// One base, whether a folder is quantised before or while it is read: an adapter fits both.
class OneBase : public ::testing::TestWithParam<DType> {};

TEST_P(OneBase, ReadingQuantisesAsQuantizeDoes) {
  const TemporaryFolder folder;
  write_wide_model(folder, GetParam());
  std::map<DType, std::string> codes;
  for (const bool double_quant : {false, true})
    for (const DType compute : {DType::bf16, DType::f32}) {
      const fs::path result = folder / fmt::format("{}.{}", base::name_of(compute), double_quant);
      quantizer_of(folder / "in",
                   {.double_quant = double_quant, .keep_fp32 = compute == DType::f32})
          .write(result);
      Loaded on_the_way(folder / "in", compute, double_quant);
      Loaded before(result, compute, double_quant);
      for (const models::Weight& weight : models::weights_of(before.model()))
        EXPECT_TRUE(on_the_way.bytes(weight.name) == before.bytes(weight.name))
            << weight.name << " in " << base::name_of(compute) << ", double: " << double_quant;
      codes[compute] = before.bytes("model.layers.0.mlp.up_proj.weight");
    }
  // The compute type matters to what is stored in 32 bits and more, and to that alone.
  EXPECT_EQ(codes[DType::bf16] == codes[DType::f32], base::size_of(GetParam()) == 2);
}

std::vector<DType> types_of_sources() {
#ifdef SNUG_TEST_CPU_BACKEND
  return {DType::f32, DType::f64, DType::f16, DType::bf16};
#else
  return {DType::f32, DType::f16, DType::bf16};  // a card is given no f64
#endif
}

INSTANTIATE_TEST_SUITE_P(Sources, OneBase, ::testing::ValuesIn(types_of_sources()),
                         [](const auto& test) { return std::string(base::name_of(test.param)); });

// The same of a head in 4 bits, which the files announce and config.json leaves out of what it
// skips.
TEST(QuantizeFolder, TheHeadInFourBitsIsThatOfReading) {
  for (const bool double_quant : {false, true}) {
    const TemporaryFolder folder;
    const fs::path source = golden("basic") / "model";
    const FolderQuantizer quantizer =
        quantizer_of(source, {.double_quant = double_quant, .head = true});
    EXPECT_EQ(quantizer.plan().linears, quantizer_of(source).plan().linears + 1);
    quantizer.write(folder / "out");
    const auto config = base::read_json_file(folder / "out/config.json");
    EXPECT_EQ(config["quantization_config"]["llm_int8_skip_modules"], nlohmann::json::array());
    const auto stored = models::find_model((folder / "out").string()).config.stored;
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->head, "lm_head.weight");
    EXPECT_TRUE(stored->kept.empty());
    Loaded on_the_way(source, DType::bf16, double_quant, stored->head);
    Loaded before(folder / "out", DType::bf16, double_quant, stored->head);
    const std::string head = before.bytes(stored->head);
    EXPECT_LT(std::ssize(head), 131 * 36);  // of its 131 x 36 elements
    EXPECT_TRUE(on_the_way.bytes(stored->head) == head);
  }
  EXPECT_TRUE(contains(
      user_error_of([] { quantizer_of(golden("grouped_tied") / "model", {.head = true}); }),
      "the model's head is its embedding"));
}

TEST(QuantizeFolder, EveryByteIsThatOfTransformers) {
  for (const auto& [name, model, double_quant] :
       {std::tuple{"nf4/double", "grouped_tied", true}, {"nf4/plain", "rope_linear", false}}) {
    const TemporaryFolder folder;
    const FolderQuantizer quantizer =
        quantizer_of(golden(model) / "model", {.double_quant = double_quant});
    const FolderReport report = quantizer.write(folder / "out");
    EXPECT_LE(report.result_bytes, quantizer.plan().result_bytes);
    EXPECT_EQ(report.result_bytes,
              static_cast<int64_t>(fs::file_size(folder / "out/model.safetensors")));
    expect_same_tensors(formats::TensorIndex(folder / "out"), formats::TensorIndex(golden(name)));
    EXPECT_EQ(base::read_json_file(folder / "out/config.json"),
              base::read_json_file(golden(name) / "config.json"));
    EXPECT_TRUE(fs::exists(folder / "out/generation_config.json"));
    EXPECT_EQ(folder.count(), 1U) << "nothing is left next to the result";
  }
}

TEST(QuantizeFolder, KeepsShardsAnd16BitTypes) {
  for (const auto& [name, dtype] : {std::pair{"sharded_fp16", "F16"}, {"sharded_bf16", "BF16"}}) {
    const TemporaryFolder folder;
    const fs::path model = golden(name) / "model";
    quantizer_of(model).write(folder / "out");
    const formats::TensorIndex source(model);
    const formats::TensorIndex result(folder / "out");
    EXPECT_EQ(result.files().size(), source.files().size());
    const auto index = base::read_json_file(folder / "out/model.safetensors.index.json");
    EXPECT_EQ(index["metadata"]["total_size"], result.total_bytes());
    for (const auto& tensor : source.tensors()) {
      const std::string& weight = tensor.info->name;
      const auto stored = formats::find_nf4(result, weight, tensor.info->shape);
      EXPECT_EQ(result.path_of(result.at(weight)).filename(), source.path_of(tensor).filename());
      if (stored) {
        EXPECT_EQ(stored->state.dtype, *tensor.info->dtype);
        continue;
      }
      EXPECT_EQ(result.at(weight).info->stored_dtype, dtype);
      EXPECT_EQ(bytes_of(result, weight), bytes_of(source, weight)) << weight;
    }
  }
}

// Corrections of routers decide which experts a token gets, and differ by less than bf16 has.
TEST(QuantizeFolder, KeepsTheCorrectionsOfRouters) {
  const TemporaryFolder folder;
  quantizer_of(golden("glm4_moe") / "model").write(folder / "out");
  const formats::TensorIndex source(golden("glm4_moe") / "model");
  const formats::TensorIndex result(folder / "out");
  const std::string name = "model.layers.1.mlp.gate.e_score_correction_bias";
  EXPECT_EQ(result.at(name).info->dtype, DType::f32);
  EXPECT_EQ(bytes_of(result, name), bytes_of(source, name));
}

// transformers would make a linear of 4 bits of it.
TEST(QuantizeFolder, NamesWhatStaysIn16BitsNextToTheHead) {
  const TemporaryFolder folder;
  quantizer_of(golden("gemma4_sharing") / "model").write(folder / "out");
  const auto config = base::read_json_file(folder / "out/config.json");
  EXPECT_EQ(config["quantization_config"]["llm_int8_skip_modules"],
            (nlohmann::json{"lm_head", "per_layer_model_projection"}));
  quantizer_of(golden("gemma4_moe") / "model").write(folder / "mixture");
  EXPECT_EQ(base::read_json_file(
                folder / "mixture/config.json")["quantization_config"]["llm_int8_skip_modules"],
            (nlohmann::json{"lm_head", "router.proj"}));
}

TEST(QuantizeFolder, KeepsFp32WhenAsked) {
  const TemporaryFolder folder;
  quantizer_of(golden("basic") / "model", {.keep_fp32 = true}).write(folder / "out");
  const formats::TensorIndex result(folder / "out");
  EXPECT_EQ(result.at("model.norm.weight").info->dtype, DType::f32);
  EXPECT_EQ(bytes_of(result, "lm_head.weight"),
            bytes_of(formats::TensorIndex(golden("basic") / "model"), "lm_head.weight"));
  const auto config = base::read_json_file(folder / "out/config.json");
  EXPECT_EQ(config["quantization_config"]["bnb_4bit_compute_dtype"], "float32");
  EXPECT_EQ(config["dtype"], "float32");
}

// Linears of several pieces: what is stored is what quantising the weight at once gives.
TEST(QuantizeFolder, PiecesGiveWhatTheWholeGives) {
  const TemporaryFolder folder;
  auto config = base::read_json_file(golden("basic") / "model/config.json");
  config["intermediate_size"] = 40000;
  folder.write("in/config.json", config.dump());
  const auto model = models::find_model((folder / "in").string());
  std::vector<formats::TensorSpec> specs;
  for (const auto& weight : models::weights_of(model.config)) {
    std::vector<int64_t> shape;
    for (int axis = 0; axis < weight.shape.rank(); ++axis) shape.push_back(weight.shape[axis]);
    specs.push_back({weight.name, DType::bf16, shape});
  }
  formats::SafetensorsWriter writer(folder / "in/model.safetensors", specs);
  std::vector<base::BFloat16> values(40000 * 36);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = base::to_bfloat16(std::sin(static_cast<float>(i % 99991)));
  for (const auto& spec : specs) writer.write(spec.name, values.data(), spec.bytes());
  writer.finish();

  const FolderQuantizer quantizer = quantizer_of(folder / "in");
  quantizer.write(folder / "out");
  const int64_t elements = std::ssize(values);
  std::vector<std::byte> codes(static_cast<size_t>(formats::nf4_code_bytes(elements)));
  std::vector<float> absmax(static_cast<size_t>(formats::nf4_blocks(elements)));
  formats::quantize_nf4(DType::bf16, values.data(), elements,
                        reinterpret_cast<uint8_t*>(codes.data()), absmax.data());
  std::vector<std::byte> scales(absmax.size());
  std::vector<float> nested(static_cast<size_t>(formats::nested_blocks(std::ssize(absmax))));
  formats::quantize_absmax(absmax.data(), std::ssize(absmax),
                           reinterpret_cast<uint8_t*>(scales.data()), nested.data());
  const formats::TensorIndex result(folder / "out");
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    const std::string weight = fmt::format("model.layers.1.mlp.{}.weight", name);
    EXPECT_EQ(bytes_of(result, weight), codes);
    EXPECT_EQ(bytes_of(result, weight + ".absmax"), scales);
  }
  EXPECT_LT(quantizer.plan().buffer_bytes, 4 << 20);
}

TEST(QuantizeFolder, RefusesWhatItCannotQuantise) {
  EXPECT_TRUE(contains(user_error_of([] { quantizer_of(golden("nf4/double")); }),
                       "is quantised already (its config.json"));
  const TemporaryFolder folder;
  fs::copy(golden("basic") / "model", folder / "in");
  folder.write("full/file", "x");
  const FolderQuantizer quantizer = quantizer_of(folder / "in");
  EXPECT_TRUE(contains(user_error_of([&] { quantizer.write(folder / "full"); }),
                       "exists and is not empty"));
  EXPECT_TRUE(contains(user_error_of([&] { quantizer.write(folder / "in"); }), "is not empty"));
  fs::create_directory(folder / "empty");
  quantizer.write(folder / "empty");
  EXPECT_TRUE(fs::exists(folder / "empty/model.safetensors"));

  auto config = base::read_json_file(folder / "in/config.json");
  config["num_hidden_layers"] = 3;
  folder.write("in/config.json", config.dump());
  EXPECT_TRUE(contains(user_error_of([&] { quantizer_of(folder / "in"); }), "model.layers.2."));
  config["num_hidden_layers"] = 1;
  folder.write("in/config.json", config.dump());
  EXPECT_TRUE(contains(user_error_of([&] { quantizer_of(folder / "in"); }),
                       "is not part of the model that config.json describes"));
}

// A number beyond bf16 counts: rounded, it is infinite.
class NotFinite : public ::testing::TestWithParam<float> {};

TEST_P(NotFinite, IsRefusedByQuantizeAndByReading) {
  const TemporaryFolder folder;
  fs::copy(golden("basic") / "model", folder / "in");
  const formats::TensorIndex source(folder / "in");
  const auto& tensor = source.at("model.layers.1.mlp.up_proj.weight");
  {
    // The data begins after the length and the header.
    auto file = base::File::open_for_update(folder / "in/model.safetensors");
    uint64_t header_bytes = 0;
    file.read_at(0, &header_bytes, 8);
    const float value = GetParam();
    file.write_at(8 + static_cast<int64_t>(header_bytes) + tensor.info->begin + 40, &value, 4);
  }
  const bool is_rounded = GetParam() == 3.4e38F;
  const std::string expected =
      fmt::format("model.safetensors: tensor 'model.layers.1.mlp.up_proj.weight' holds {}",
                  is_rounded ? "a number at [0, 0]" : "an infinity or NaN at [0, 10]");
  const FolderQuantizer quantizer = quantizer_of(folder / "in");
  EXPECT_TRUE(contains(user_error_of([&] { quantizer.write(folder / "out"); }), expected));
  EXPECT_FALSE(fs::exists(folder / "out"));
  EXPECT_EQ(folder.count(), 1U);
  EXPECT_TRUE(
      contains(user_error_of([&] { Loaded(folder / "in", DType::bf16, false); }), expected));
}

INSTANTIATE_TEST_SUITE_P(All, NotFinite,
                         ::testing::Values(std::numeric_limits<float>::infinity(),
                                           std::numeric_limits<float>::quiet_NaN(), 3.4e38F));

}  // namespace
}  // namespace snug::convert
