// snug dequantize's work on a folder as gpt-oss is published, with random weights.
#include "convert/folder/dequantize_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/temporary_folder.h"
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
