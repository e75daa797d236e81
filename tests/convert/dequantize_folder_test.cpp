// snug dequantize's work on a folder as gpt-oss is published, with random weights.
#include "convert/folder/dequantize_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/temporary_folder.h"
#include "formats/folder/safetensors_writer.h"
#include "runtime/mxfp4_folder.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::BFloat16;
using base::DType;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

std::vector<uint8_t> dequantized_bytes_of(const formats::TensorIndex& index,
                                          const std::string& name) {
  const formats::IndexedTensor& tensor = index.at(name);
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.info->bytes()));
  index.read(tensor, bytes.data());
  return bytes;
}

// Every expert of a stack, decoded alone.
std::vector<uint8_t> decoded(const formats::TensorIndex& index, const models::Weight& weight) {
  const std::vector<int64_t> dims = testing::dims_of_weight(weight);
  const auto blocks = dequantized_bytes_of(index, weight.name + "_blocks");
  const auto scales = dequantized_bytes_of(index, weight.name + "_scales");
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
  testing::make_mxfp4_folder(folder / "in");
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
  for (const models::Weight& weight : models::file_weights_of(testing::mxfp4_stack())) {
    EXPECT_EQ(to.at(weight.name).info->shape, testing::dims_of_weight(weight));
    const bool is_stack = weight.is_expert && weight.shape.rank() == 3;
    EXPECT_EQ(dequantized_bytes_of(to, weight.name),
              is_stack ? decoded(from, weight) : dequantized_bytes_of(from, weight.name))
        << weight.name;
  }
}

// A linear of all finite codes whose scales are those of blocks of 8 by 16, and one with a scale
// for all, within a model of several parts.
void make_fp8_folder(const fs::path& folder, int64_t scale_rows = 4) {
  fs::create_directories(folder);
  const std::vector<formats::TensorSpec> specs{
      {"model.language_model.a.weight", DType::u8, {32, 16}, "F8_E4M3"},
      {"model.language_model.a.weight_scale_inv", DType::bf16, {scale_rows, 1}},
      {"model.language_model.a.activation_scale", DType::bf16, {}},
      {"model.language_model.b.weight", DType::u8, {1, 3}, "F8_E4M3"},
      {"model.language_model.b.weight_scale_inv", DType::f32, {}},
      {"vision_tower.c.weight", DType::f32, {2}}};
  formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
  std::vector<uint8_t> codes(512);
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<uint8_t>((i & 127U) == 127U ? 0 : i & 255U);
  writer.write(specs[0].name, codes.data(), 512);
  std::vector<BFloat16> scales;
  scales.reserve(static_cast<size_t>(scale_rows));
  for (int64_t i = 1; i <= scale_rows; ++i)
    scales.push_back(base::to_bfloat16(0.75F * static_cast<float>(i)));
  writer.write(specs[1].name, scales.data(), 2 * scale_rows);
  writer.write(specs[2].name, scales.data(), 2);
  writer.write(specs[3].name, "\x38\xB9\x7E", 3);  // 1, -1.125 and 448
  const float scale = 3.0F;
  writer.write(specs[4].name, &scale, 4);
  writer.write(specs[5].name, "12345678", 8);
  writer.finish();
  const json quantised{{"quant_method", "fp8"}, {"activation_scheme", "static"}};
  base::write_file_atomically(
      folder / "config.json",
      json{{"model_type", "mistral3"},
           {"dtype", "bfloat16"},
           {"text_config", {{"model_type", "ministral3"}, {"dtype", "float8"}}},
           {"quantization_config", quantised}}
          .dump());
}

// The value by the format's page: sign, four bits of exponent with a bias of 7, three of mantissa.
double value_of_code(int code) {
  const int exponent = code >> 3 & 15;
  const double fraction = (code & 7) / 8.0;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1.0 + fraction, exponent - 7);
  return code < 128 ? size : -size;
}

TEST(DequantizeFolder, MultipliesFp8ByItsScales) {
  const TemporaryFolder folder;
  make_fp8_folder(folder / "in");
  const FolderDequantizer dequantizer(folder / "in");
  EXPECT_EQ(dequantizer.plan().linears, 2);
  EXPECT_EQ(dequantizer.plan().linear_weights, 512 + 3);
  const FolderReport report = dequantizer.write(folder / "out");
  EXPECT_LE(report.result_bytes, dequantizer.plan().result_bytes);
  const formats::TensorIndex from(folder / "in");
  const formats::TensorIndex to(folder / "out");
  ASSERT_EQ(to.tensors().size(), 3);
  const auto values_of = [&](const char* name) {
    std::vector<BFloat16> values(static_cast<size_t>(to.at(name).info->elements()));
    to.read(to.at(name), values.data());
    return values;
  };
  const auto values = values_of("model.language_model.a.weight");
  for (int i = 0; i < 512; ++i) {
    const int code = (i & 127) == 127 ? 0 : i & 255;
    const double product = value_of_code(code) * 0.75 * (1 + i / 128);
    EXPECT_EQ(values[static_cast<size_t>(i)].bits,
              base::to_bfloat16(static_cast<float>(product)).bits)
        << i;
  }
  const auto few = values_of("model.language_model.b.weight");
  EXPECT_EQ(base::to_float(few[0]), 3.0F);
  EXPECT_EQ(base::to_float(few[1]), -3.375F);
  EXPECT_EQ(base::to_float(few[2]), 1344.0F);
  EXPECT_EQ(dequantized_bytes_of(to, "vision_tower.c.weight"),
            dequantized_bytes_of(from, "vision_tower.c.weight"));
  const json config = base::read_json_file(folder / "out/config.json");
  EXPECT_FALSE(config.contains("quantization_config"));
  EXPECT_EQ(config["text_config"]["dtype"], "bfloat16");
  make_fp8_folder(folder / "wrong", 5);
  EXPECT_TRUE(contains(user_error_of([&] { FolderDequantizer(folder / "wrong"); }),
                       "weight_scale_inv' is"));
}

TEST(DequantizeFolder, RefusesWhatItCannotConvert) {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& name, const testing::ChangeSpecs& change,
                            uint8_t scale = 120) {
    testing::make_mxfp4_folder(folder / name, change, scale);
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
}  // namespace snug::convert
