#include "formats/folder/safetensors_writer.h"

#include "../base/captured_stream.h"
#include "../base/small_disk.h"
#include "formats/folder/model_writer.h"
#include "formats/folder/safetensors_file.h"
#include "formats/folder/tensor_index.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using base::DType;
using testing::contains;
using testing::dies;
using testing::TemporaryFolder;
using testing::user_error_of;

std::vector<uint8_t> counted(size_t bytes, uint8_t first) {
  std::vector<uint8_t> values(bytes);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(SafetensorsWriter, LateTensorsTakeWhatTheyNeed) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "f", {{"bytes", DType::u8, {3}}, {"half", DType::bf16, {2}}},
                           {}, {{"late1", DType::u8, {1000000}}, {"late2", DType::u8, {9}}});
  writer.write_late("late2", "two");
  writer.write("bytes", "abc", 3);
  EXPECT_FALSE(writer.complete());
  writer.write_late("late1", "the first");
  writer.write("half", "1234", 4);
  EXPECT_TRUE(writer.complete());
  writer.finish();
  EXPECT_EQ(fs::file_size(folder / "f"), static_cast<uintmax_t>(writer.file_bytes()));
  EXPECT_LT(writer.file_bytes(), 1000);
  const SafetensorsFile file(folder / "f");
  for (const auto& [name, text] :
       {std::pair{"bytes", "abc"}, {"half", "1234"}, {"late1", "the first"}, {"late2", "two"}}) {
    std::string bytes(static_cast<size_t>(file.at(name).bytes()), ' ');
    file.read(file.at(name), bytes.data());
    EXPECT_EQ(bytes, text) << name;
  }
}

TEST(SafetensorsWriter, AlignsEveryTensorToItsElement) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> tensors = {{"bytes", DType::u8, {3}},
                                           {"half", DType::bf16, {5}},
                                           {"double", DType::f64, {1}},
                                           {"empty", DType::f32, {0, 4}},
                                           {"scalar", DType::f32, {}}};
  SafetensorsWriter writer(folder / "f", tensors);
  uint8_t first = 1;
  for (const TensorSpec& tensor : tensors) {
    writer.write(tensor.name, counted(static_cast<size_t>(tensor.bytes()), first).data(),
                 tensor.bytes());
    first = static_cast<uint8_t>(first + 20);
  }
  EXPECT_FALSE(fs::exists(folder / "f")) << "not before finish";
  writer.finish();
  EXPECT_EQ(fs::file_size(folder / "f"), static_cast<uintmax_t>(writer.file_bytes()));

  const SafetensorsFile file(folder / "f");
  const int64_t data_start = writer.file_bytes() - 3 - 10 - 8 - 4;
  EXPECT_EQ(data_start % 8, 0);
  first = 1;
  for (const TensorSpec& tensor : tensors) {
    const TensorInfo& info = file.at(tensor.name);
    EXPECT_EQ(info.begin % base::size_of(tensor.dtype), 0) << tensor.name;
    EXPECT_EQ(info.shape, tensor.shape);
    std::vector<uint8_t> bytes(static_cast<size_t>(info.bytes()));
    file.read(info, bytes.data());
    EXPECT_EQ(bytes, counted(bytes.size(), first)) << tensor.name;
    first = static_cast<uint8_t>(first + 20);
  }
}

TEST(SafetensorsWriter, TakesTensorsInPiecesAndAnyOrder) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "f", {{"a", DType::u8, {6}}, {"b", DType::u8, {2}}});
  writer.write("b", "78", 2);
  writer.write("a", "12", 2);
  EXPECT_FALSE(writer.complete());
  writer.write("a", "3456", 4);
  EXPECT_TRUE(writer.complete());
  writer.finish();
  EXPECT_TRUE(base::read_text_file(folder / "f").ends_with("12345678"));
}

TEST(SafetensorsWriter, LeavesNothingWhenAbandoned) {
  const TemporaryFolder folder;
  {
    SafetensorsWriter writer(folder / "f", {{"a", DType::u8, {6}}});
    writer.write("a", "12", 2);
  }
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsWriter, KeepsTheOldFileWhenAbandoned) {
  const TemporaryFolder folder;
  folder.write("f", "old");
  { SafetensorsWriter writer(folder / "f", {{"a", DType::u8, {6}}}); }
  EXPECT_EQ(base::read_text_file(folder / "f"), "old");
  EXPECT_EQ(folder.count(), 1U);
}

TEST(SafetensorsWriter, FullDiskLeavesNothing) {
  const TemporaryFolder folder;
  const testing::SmallDisk full(0);
  const std::string error = user_error_of([&] {
    SafetensorsWriter writer(folder / "f", {{"a", DType::u8, {6}}});
  });
  EXPECT_TRUE(contains(error, "File too large"));
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsWriter, TooSmallDiskShowsBeforeTheFirstByte) {
  const TemporaryFolder folder;
  const testing::SmallDisk small(1 << 16);
  const std::string error = user_error_of([&] {
    SafetensorsWriter writer(folder / "f", {{"a", DType::u8, {1 << 20}}});
  });
  EXPECT_TRUE(contains(error, "bytes for " + (folder / "f").string() + ": File too large"));
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsWriter, MissingFolder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(user_error_of([&] { SafetensorsWriter writer(folder / "no/f", {}); }),
                       "No such file or directory"));
}

TEST(SafetensorsWriterDeath, BugsAreCaught) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> tensors = {{"a", DType::u8, {6}}};
  EXPECT_TRUE(dies([&] { SafetensorsWriter(folder / "f", tensors).write("b", "1", 1); },
                   "b was not declared"));
  EXPECT_TRUE(dies([&] { SafetensorsWriter(folder / "f", tensors).write("a", "1234567", 7); },
                   "7 bytes for tensor a"));
  EXPECT_TRUE(dies([&] { SafetensorsWriter(folder / "f", tensors).finish(); }, "0 of 6 bytes"));
  const std::vector<TensorSpec> twice = {{"a", DType::u8, {1}}, {"a", DType::u8, {1}}};
  EXPECT_TRUE(dies([&] { SafetensorsWriter(folder / "f", twice); }, "declared twice"));
}

void write_model(const TemporaryFolder& folder, int64_t max_shard_bytes) {
  const std::vector<TensorSpec> tensors = {{"a", DType::u8, {6}},
                                           {"b", DType::u8, {5}},
                                           {"c", DType::u8, {20}},
                                           {"empty", DType::u8, {0}},
                                           {"d", DType::u8, {4}}};
  ModelWriter writer(folder.path(), tensors, max_shard_bytes);
  uint8_t first = 0;
  for (const TensorSpec& tensor : tensors)
    writer.write(tensor.name, counted(static_cast<size_t>(tensor.bytes()), first++).data(),
                 tensor.bytes());
  writer.finish();
}

void expect_model(const TemporaryFolder& folder) {
  const TensorIndex index(folder.path());
  EXPECT_EQ(index.tensors().size(), 5U);
  EXPECT_EQ(index.total_bytes(), 35);
  std::vector<uint8_t> bytes(20);
  index.read(index.at("c"), bytes.data());
  EXPECT_EQ(bytes, counted(20, 2));
}

TEST(ModelWriter, SmallModelsAreOneFile) {
  const TemporaryFolder folder;
  write_model(folder, ModelWriter::kDefaultShardBytes);
  EXPECT_TRUE(fs::exists(folder / "model.safetensors"));
  EXPECT_EQ(folder.count(), 1U);
  expect_model(folder);
}

TEST(ModelWriter, LargeModelsAreShardsWithAnIndex) {
  const TemporaryFolder folder;
  write_model(folder, 12);
  EXPECT_EQ(folder.count(), 4U);
  EXPECT_TRUE(fs::exists(folder / "model-00001-of-00003.safetensors"));
  EXPECT_TRUE(fs::exists(folder / "model-00003-of-00003.safetensors"));
  const auto index =
      nlohmann::json::parse(base::read_text_file(folder / "model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 35);
  EXPECT_EQ(index["weight_map"]["b"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["c"], "model-00002-of-00003.safetensors");
  expect_model(folder);
}

TEST(ModelWriter, LeavesNothingWhenAbandoned) {
  const TemporaryFolder folder;
  {
    ModelWriter writer(folder.path(), {{"a", DType::u8, {4}}, {"b", DType::u8, {4}}}, 4);
    writer.write("a", "1234", 4);
    writer.write("b", "1", 1);
    EXPECT_EQ(folder.count(), 2U);
  }
  EXPECT_EQ(folder.count(), 0U);
}

TEST(ModelWriter, FullDiskInTheSecondShardLeavesNothing) {
  const TemporaryFolder folder;
  const auto write = [&] {
    ModelWriter writer(folder.path(), {{"a", DType::u8, {4}}, {"b", DType::u8, {4}}}, 4);
    writer.write("a", "1234", 4);
    const testing::SmallDisk full(0);
    writer.write("b", "1234", 4);
  };
  EXPECT_TRUE(contains(user_error_of(write), "File too large"));
  EXPECT_EQ(folder.count(), 0U);
}

}  // namespace
}  // namespace snug::formats
