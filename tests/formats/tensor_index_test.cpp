#include "formats/folder/tensor_index.h"

#include "../base/temporary_folder.h"
#include "formats/folder/safetensors_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace snug::formats {
namespace {

using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

void write_shard(const TemporaryFolder& folder, const std::string& name,
                 const std::vector<std::string>& tensors) {
  std::vector<TensorSpec> specs;
  for (const std::string& tensor : tensors) specs.push_back({tensor, base::DType::u8, {4}});
  SafetensorsWriter writer(folder / name, specs);
  for (const std::string& tensor : tensors) writer.write(tensor, "1234", 4);
  writer.finish();
}

std::string open_error(const TemporaryFolder& folder) {
  return user_error_of([&] { const TensorIndex index(folder.path()); });
}

constexpr std::string_view kIndex = R"({"metadata": {"total_size": 12},
  "weight_map": {"a": "s1.safetensors", "b": "s1.safetensors", "c": "s2.safetensors"}})";

TEST(TensorIndex, ReadsShards) {
  const TemporaryFolder folder;
  folder.write("model.safetensors.index.json", kIndex);
  write_shard(folder, "s1.safetensors", {"a", "b"});
  write_shard(folder, "s2.safetensors", {"c"});
  const TensorIndex index(folder.path());
  EXPECT_EQ(index.tensors().size(), 3U);
  EXPECT_EQ(index.total_bytes(), 12);
  EXPECT_EQ(index.path_of(index.at("c")), folder / "s2.safetensors");
  char bytes[2];
  index.read_range(index.at("c"), 2, 2, bytes);
  EXPECT_EQ(std::string(bytes, 2), "34");
  EXPECT_EQ(index.find("d"), nullptr);
  EXPECT_TRUE(contains(user_error_of([&] { index.at("d"); }), "there is no tensor 'd'"));
}

TEST(TensorIndex, OneFileComesFirst) {
  const TemporaryFolder folder;
  write_shard(folder, "model.safetensors", {"x"});
  folder.write("model.safetensors.index.json", kIndex);
  EXPECT_EQ(TensorIndex(folder.path()).tensors().size(), 1U);
}

TEST(TensorIndex, MissingShard) {
  const TemporaryFolder folder;
  folder.write("model.safetensors.index.json", kIndex);
  write_shard(folder, "s1.safetensors", {"a", "b"});
  EXPECT_TRUE(contains(open_error(folder), "s2.safetensors: the shard is missing"));
}

TEST(TensorIndex, TensorAbsentFromItsShard) {
  const TemporaryFolder folder;
  folder.write("model.safetensors.index.json", kIndex);
  write_shard(folder, "s1.safetensors", {"a"});
  write_shard(folder, "s2.safetensors", {"b", "c"});
  const std::string error = open_error(folder);
  EXPECT_TRUE(contains(error, "s1.safetensors: there is no tensor 'b', although"));
}

TEST(TensorIndex, TensorInTwoShards) {
  const TemporaryFolder folder;
  folder.write("model.safetensors.index.json", kIndex);
  write_shard(folder, "s1.safetensors", {"a", "b"});
  write_shard(folder, "s2.safetensors", {"a", "c"});
  const std::string error = open_error(folder);
  EXPECT_TRUE(contains(error, "s2.safetensors: tensor 'a' is also in"));
}

TEST(TensorIndex, BrokenIndexes) {
  const TemporaryFolder folder;
  const auto error_with = [&](std::string_view text) {
    folder.write("model.safetensors.index.json", text);
    return open_error(folder);
  };
  EXPECT_TRUE(contains(error_with("{"), "index.json:1:"));
  EXPECT_TRUE(contains(error_with("[]"), "must hold a JSON object"));
  EXPECT_TRUE(contains(error_with("{}"), "'weight_map' is missing"));
  EXPECT_TRUE(contains(error_with(R"({"weight_map": {}})"), "'weight_map' lists no tensors"));
  EXPECT_TRUE(contains(error_with(R"({"weight_map": {"a": 1}})"), "'weight_map.a' must be text"));
  EXPECT_TRUE(contains(error_with(R"({"weight_map": {"a": "../x"}})"), "in the same folder"));
  EXPECT_TRUE(contains(error_with(R"({"weight_map": {"a": "x", "a": "y"}})"), "given twice"));
}

TEST(TensorIndex, PickleOnlyFoldersSayHowToConvert) {
  const TemporaryFolder folder;
  folder.write("pytorch_model.bin", "x");
  const std::string error = open_error(folder);
  EXPECT_TRUE(contains(error, "pytorch_model.bin: a pickle file"));
  EXPECT_TRUE(contains(error, "safe_serialization=True"));
}

TEST(TensorIndex, FoldersWithoutWeights) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(open_error(folder), "has neither model.safetensors nor"));
  EXPECT_TRUE(contains(user_error_of([&] { const TensorIndex index(folder / "none"); }),
                       "there is no such folder"));
}

}  // namespace
}  // namespace snug::formats
