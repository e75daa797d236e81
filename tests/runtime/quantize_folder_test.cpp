// snug quantize's work against folders that transformers quantised (tests/goldens/nf4).
#include "runtime/quantize_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "formats/nf4.h"
#include "formats/quant_state.h"
#include "formats/tensor_index.h"
#include "models/weights.h"
#include "runtime/tiny_run.h"

namespace snug::runtime {
namespace {

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

TEST(QuantizeFolder, EveryByteIsThatOfTransformers) {
  for (const auto& [name, model, double_quant] :
       {std::tuple{"nf4/double", "grouped_tied", true}, {"nf4/plain", "rope_linear", false}}) {
    const TemporaryFolder folder;
    const FolderQuantizer quantizer =
        quantizer_of(golden(model) / "model", {.double_quant = double_quant});
    const FolderQuantizeReport report = quantizer.write(folder / "out");
    EXPECT_LE(report.result_bytes, quantizer.plan().result_bytes);
    EXPECT_EQ(report.result_bytes,
              static_cast<int64_t>(fs::file_size(folder / "out/model.safetensors")));
    expect_same_tensors(formats::TensorIndex(folder / "out"), formats::TensorIndex(golden(name)));
    EXPECT_EQ(base::read_json_file(folder / "out/config.json"),
              base::read_json_file(golden(name) / "config.json"));
    EXPECT_TRUE(fs::exists(folder / "out/generation_config.json"));
    EXPECT_EQ(folder.count(), 1U) << "nothing is left beside the result";
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

TEST(QuantizeFolder, RefusesWeightsThatAreNotFinite) {
  const TemporaryFolder folder;
  fs::copy(golden("basic") / "model", folder / "in");
  const formats::TensorIndex source(folder / "in");
  const auto& tensor = source.at("model.layers.1.mlp.up_proj.weight");
  {
    // The data begins after the length and the header.
    auto file = base::File::open_for_update(folder / "in/model.safetensors");
    uint64_t header_bytes = 0;
    file.read_at(0, &header_bytes, 8);
    const float infinity = std::numeric_limits<float>::infinity();
    file.write_at(8 + static_cast<int64_t>(header_bytes) + tensor.info->begin + 40, &infinity, 4);
  }
  const FolderQuantizer quantizer = quantizer_of(folder / "in");
  EXPECT_TRUE(contains(user_error_of([&] { quantizer.write(folder / "out"); }),
                       "'model.layers.1.mlp.up_proj.weight' holds an infinity or NaN"));
  EXPECT_FALSE(fs::exists(folder / "out"));
  EXPECT_EQ(folder.count(), 1U);
}

}  // namespace
}  // namespace snug::runtime
