// Models with more layers, as LLaMA-Pro has them.
#include "convert/source/expanded_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "convert/folder/write_folder.h"
#include "convert/source/folder_weights.h"
#include "models/families/families.h"
#include "models/weights.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

fs::path golden_model(const std::string& name) {
  return fs::path("tests/goldens") / name / "model";
}

std::map<std::string, std::vector<float>> values_of(const WeightSource& source) {
  std::map<std::string, std::vector<float>> all;
  for (const SourceTensor& tensor : source.tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    source.read(tensor, 0, tensor.rows(), values);
    all.emplace(tensor.name, std::move(values));
  }
  return all;
}

bool is_zero(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return value == 0.0F; });
}

// What ends a block, in the names of each family, with biases where there are some.
struct Expandable {
  const char* model;
  int64_t new_layers;
  std::vector<std::string> outputs;
};

class Expanded : public ::testing::TestWithParam<Expandable> {};

// Every layer of the base is there, and after every (layers / N)-th its copy, whose outputs alone
// are another: 0.
TEST_P(Expanded, HaveLayersThatAddNothing) {
  const auto& [name, number, outputs] = GetParam();
  const TemporaryFolder folder;
  const FolderWeights base(golden_model(name));
  const ExpandedWeights expanded(base, number);
  write_folder(expanded, {}, folder / "out");
  const FolderWeights written(folder / "out");
  const models::Stack before = models::stack_of(*base.model());
  const models::Stack after = models::stack_of(*written.model());
  const int64_t every = before.layer_count() / number;
  EXPECT_EQ(after.layer_count(), before.layer_count() + number);
  EXPECT_EQ(std::ssize(expanded.new_layers()), number);
  const auto old_values = values_of(base);
  auto left = values_of(written);
  std::set<std::string> zeros;
  for (const auto& [tensor, values] : old_values) {
    bool is_of_layer = false;
    for (int64_t layer = 0; layer < before.layer_count(); ++layer) {
      const std::string prefix = before.layer_name(layer) + ".";
      if (!tensor.starts_with(prefix)) continue;
      is_of_layer = true;
      const std::string rest = tensor.substr(prefix.size());
      const int64_t place = layer + layer / every;
      EXPECT_EQ(left.extract(after.layer_name(place) + "." + rest).mapped(), values) << tensor;
      if ((layer + 1) % every != 0) continue;
      const auto copy = left.extract(after.layer_name(place + 1) + "." + rest);
      if (copy.mapped() != values) {
        EXPECT_TRUE(is_zero(copy.mapped())) << tensor;
        zeros.insert(rest);
      }
    }
    if (!is_of_layer) {
      EXPECT_EQ(left.extract(tensor).mapped(), values) << tensor;
    }
  }
  EXPECT_TRUE(left.empty()) << left.begin()->first;
  EXPECT_EQ(zeros, std::set<std::string>(outputs.begin(), outputs.end()));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Expanded,
    ::testing::Values(
        Expandable{"grouped_tied", 1, {"self_attn.o_proj.weight", "mlp.down_proj.weight"}},
        Expandable{"gemma2", 3, {"self_attn.o_proj.weight", "mlp.down_proj.weight"}},
        Expandable{
            "gpt2",
            2,
            {"attn.c_proj.weight", "attn.c_proj.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"}},
        Expandable{
            "mixtral",
            1,
            {"self_attn.o_proj.weight", "block_sparse_moe.experts.0.w2.weight",
             "block_sparse_moe.experts.1.w2.weight", "block_sparse_moe.experts.2.w2.weight",
             "block_sparse_moe.experts.3.w2.weight", "block_sparse_moe.experts.4.w2.weight"}},
        Expandable{"qwen2_moe",
                   1,
                   {"self_attn.o_proj.weight", "mlp.experts.0.down_proj.weight",
                    "mlp.experts.1.down_proj.weight", "mlp.experts.2.down_proj.weight",
                    "mlp.experts.3.down_proj.weight", "mlp.experts.4.down_proj.weight",
                    "mlp.shared_expert.down_proj.weight"}},
        Expandable{"glm4_moe",
                   1,
                   {"self_attn.o_proj.weight", "mlp.experts.0.down_proj.weight",
                    "mlp.experts.1.down_proj.weight", "mlp.experts.2.down_proj.weight",
                    "mlp.experts.3.down_proj.weight", "mlp.experts.4.down_proj.weight",
                    "mlp.experts.5.down_proj.weight", "mlp.experts.6.down_proj.weight",
                    "mlp.experts.7.down_proj.weight", "mlp.shared_experts.down_proj.weight"}},
        Expandable{"gpt_oss",
                   1,
                   {"self_attn.o_proj.weight", "self_attn.o_proj.bias", "mlp.experts.down_proj",
                    "mlp.experts.down_proj_bias"}}),
    [](const auto& test) { return std::string(test.param.model); });

std::string refusal_of(const fs::path& model, int64_t new_layers) {
  return user_error_of([&] { ExpandedWeights(FolderWeights(model), new_layers); });
}

TEST(ExpandedModels, WhatCannotBeExpandedIsRefused) {
  for (const int64_t number : {-1, 0, 2, 6})
    EXPECT_TRUE(contains(refusal_of(golden_model("grouped_tied"), number), "give one of 1, 3"))
        << refusal_of(golden_model("grouped_tied"), number);
  EXPECT_TRUE(contains(refusal_of(golden_model("t5"), 1), "has an encoder and a decoder"));
  EXPECT_TRUE(contains(refusal_of(golden_model("gemma4"), 1), "have a factor for all that passes"));
  // Without layer_types gemma2 has a window in every second layer, counted from the first.
  const TemporaryFolder folder;
  fs::copy(golden_model("gemma2"), folder / "model");
  json config = json::parse(base::read_text_file(folder / "model/config.json"));
  config.erase("layer_types");
  base::write_file_atomically(folder / "model/config.json", config.dump());
  const std::string refused = refusal_of(folder / "model", 3);
  EXPECT_TRUE(contains(refused, "layer 0 would do something else as layer 1")) << refused;
}

}  // namespace
}  // namespace snug::convert
