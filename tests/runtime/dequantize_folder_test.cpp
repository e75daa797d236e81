// snug dequantize's work on a folder as gpt-oss is published, with random weights.
#include "runtime/dequantize_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "formats/mxfp4.h"
#include "formats/safetensors_writer.h"
#include "models/config.h"
#include "models/families.h"
#include "models/weights.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using base::BFloat16;
using base::DType;
using formats::TensorSpec;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

json config_of_folder() {
  return {{"architectures", {"GptOssForCausalLM"}},
          {"model_type", "gpt_oss"},
          {"vocab_size", 24},
          {"hidden_size", 64},
          {"intermediate_size", 32},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 8},
          {"num_local_experts", 3},
          {"num_experts_per_tok", 2},
          {"max_position_embeddings", 64},
          {"quantization_config",
           {{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"lm_head"}}}}};
}

models::Stack stack_of_folder() {
  json config = config_of_folder();
  config.erase("quantization_config");
  return models::stack_of(models::parse_config(config.dump(), "config.json"));
}

std::vector<int64_t> dims_of_weight(const models::Weight& weight) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < weight.shape.rank(); ++axis) dims.push_back(weight.shape[axis]);
  return dims;
}

// Random bytes: every code, scales of small numbers, and bf16 that is finite.
void fill(std::vector<uint8_t>& bytes, const TensorSpec& spec, uint8_t most_scale,
          std::mt19937& random) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(random());
    if (spec.name.ends_with("_scales")) bytes[i] = static_cast<uint8_t>(100 + bytes[i] % 28);
    if (spec.dtype == DType::bf16 && i % 2 == 1) bytes[i] &= 0x3fU;
  }
  if (spec.name.ends_with("_scales")) bytes.back() = most_scale;
}

// The folder's tensors, in the published form; `change` may alter what is declared.
using Change = std::function<void(std::vector<TensorSpec>&)>;
void make_folder(const fs::path& folder, const Change& change = {}, uint8_t last_scale = 120) {
  fs::create_directories(folder);
  base::write_file_atomically(folder / "config.json", config_of_folder().dump());
  base::write_file_atomically(folder / "tokenizer_config.json", "{}");
  std::vector<TensorSpec> specs;
  for (const models::Weight& weight : models::file_weights_of(stack_of_folder())) {
    const std::vector<int64_t> dims = dims_of_weight(weight);
    if (!weight.is_expert || dims.size() < 3) {
      specs.push_back({weight.name, DType::bf16, dims});
      continue;
    }
    const int64_t blocks = dims[1] / formats::kMxfp4BlockSize;
    specs.push_back({weight.name + "_blocks", DType::u8,
                     {dims[0], dims[2], blocks, formats::kMxfp4BlockBytes}});
    specs.push_back({weight.name + "_scales", DType::u8, {dims[0], dims[2], blocks}});
  }
  if (change) change(specs);
  formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
  std::mt19937 random(5);
  for (const TensorSpec& spec : specs) {
    std::vector<uint8_t> bytes(static_cast<size_t>(spec.bytes()));
    fill(bytes, spec, last_scale, random);
    writer.write(spec.name, bytes.data(), spec.bytes());
  }
  writer.finish();
}

std::vector<uint8_t> bytes_of(const formats::TensorIndex& index, const std::string& name) {
  const formats::IndexedTensor& tensor = index.at(name);
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.info->bytes()));
  index.read(tensor, bytes.data());
  return bytes;
}

// Every expert of a stack, decoded alone.
std::vector<uint8_t> decoded(const formats::TensorIndex& index, const models::Weight& weight) {
  const std::vector<int64_t> dims = dims_of_weight(weight);
  const auto blocks = bytes_of(index, weight.name + "_blocks");
  const auto scales = bytes_of(index, weight.name + "_scales");
  const int64_t expert = dims[1] * dims[2];
  std::vector<uint8_t> bytes(static_cast<size_t>(dims[0] * expert) * sizeof(BFloat16));
  for (int64_t e = 0; e < dims[0]; ++e)
    formats::decode_transposed(
        {blocks.data() + e * expert / 2, scales.data() + e * expert / formats::kMxfp4BlockSize,
         dims[2], dims[1]},
        reinterpret_cast<BFloat16*>(bytes.data()) + e * expert);
  return bytes;
}

TEST(DequantizeFolder, HoldsEveryValueAndFitsItsPlan) {
  const TemporaryFolder folder;
  make_folder(folder / "in");
  const FolderDequantizer dequantizer(folder / "in");
  EXPECT_EQ(dequantizer.plan().stacks, 4);
  EXPECT_EQ(dequantizer.plan().stack_weights, 2 * 3 * (64 * 64 + 32 * 64));
  const FolderReport report = dequantizer.write(folder / "out");
  EXPECT_LE(report.result_bytes, dequantizer.plan().result_bytes);
  const json config = base::read_json_file(folder / "out/config.json");
  EXPECT_FALSE(config.contains("quantization_config"));
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_TRUE(fs::exists(folder / "out/tokenizer_config.json"));
  EXPECT_EQ(models::find_model((folder / "out").string()).config.num_experts, 3);
  const formats::TensorIndex from(folder / "in");
  const formats::TensorIndex to(folder / "out");
  for (const models::Weight& weight : models::file_weights_of(stack_of_folder())) {
    EXPECT_EQ(to.at(weight.name).info->shape, dims_of_weight(weight));
    const bool is_stack = weight.is_expert && weight.shape.rank() == 3;
    EXPECT_EQ(bytes_of(to, weight.name),
              is_stack ? decoded(from, weight) : bytes_of(from, weight.name))
        << weight.name;
  }
}

TEST(DequantizeFolder, RefusesWhatItCannotConvert) {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& name, const Change& change, uint8_t scale = 120) {
    make_folder(folder / name, change, scale);
    return user_error_of([&] { FolderDequantizer(folder / name).write(folder / (name + "_out")); });
  };
  EXPECT_TRUE(contains(error_of("more",
                                [](auto& specs) {
                                  specs.push_back({"model.extra", DType::bf16, {2}});
                                }),
                       "'model.extra' is not part of the model"));
  EXPECT_TRUE(contains(error_of("less", [](auto& specs) { specs.pop_back(); }), "no tensor"));
  EXPECT_TRUE(contains(error_of("infinite", {}, 255), "is not finite in bf16"));
  EXPECT_FALSE(fs::exists(folder / "infinite_out")) << "all of it, or nothing";
  EXPECT_TRUE(contains(user_error_of([] { FolderDequantizer("tests/goldens/gpt_oss/model"); }),
                       "the folder has no MXFP4"));
}

}  // namespace
}  // namespace snug::runtime
