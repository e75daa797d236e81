#include "formats/folder/safetensors_file.h"

#include "../base/temporary_folder.h"
#include "formats/folder/safetensors_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

// Two float tensors, "a" (2, 3) and "b" (4): 0, 1, 2, ... 9.
std::string small_file() {
  const TemporaryFolder folder;
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 0.0F);
  SafetensorsWriter writer(folder / "f",
                           {{"a", base::DType::f32, {2, 3}}, {"b", base::DType::f32, {4}}});
  writer.write("a", values.data(), 24);
  writer.write("b", values.data() + 6, 16);
  writer.finish();
  return base::read_text_file(folder / "f");
}

std::string open_error(const fs::path& path) {
  return user_error_of([&] { const SafetensorsFile file(path); });
}

TEST(SafetensorsFile, ReadsFilesOfOtherLibraries) {
  const fs::path folder = "../shared/data/safetensors/good";
  if (!fs::exists(folder)) GTEST_SKIP() << "no shared data";
  const SafetensorsFile doubles(folder / "tensor-2d-float64.safetensors");
  ASSERT_FALSE(doubles.tensors().empty());
  const TensorInfo& tensor = doubles.tensors().front();
  EXPECT_EQ(tensor.dtype, base::DType::f64);
  EXPECT_EQ(tensor.shape.size(), 2U);
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  doubles.read(tensor, values.data());
  for (const double value : values) EXPECT_TRUE(std::isfinite(value));

  EXPECT_EQ(SafetensorsFile(folder / "tensor-1d-int32.safetensors").tensors()[0].dtype,
            base::DType::i32);
  EXPECT_EQ(SafetensorsFile(folder / "tensor-3d-float32.safetensors").tensors()[0].shape.size(),
            3U);
  EXPECT_EQ(SafetensorsFile(folder / "tensor-4d-float32.safetensors").tensors()[0].shape.size(),
            4U);
}

TEST(SafetensorsFile, ReadsTensorsAndRanges) {
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write("f", small_file()));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  std::vector<float> values(4);
  file.read(file.at("b"), values.data());
  EXPECT_EQ(values, (std::vector<float>{6, 7, 8, 9}));
  file.read_range(file.at("a"), 8, 16, values.data());
  EXPECT_EQ(values, (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_TRUE(contains(user_error_of([&] { file.at("bb"); }),
                       "there is no tensor 'bb'; the nearest is 'b'"));
}

TEST(SafetensorsFile, ReadsInParallel) {
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write("f", small_file()));
  std::vector<std::vector<float>> copies(8, std::vector<float>(6));
  std::vector<std::thread> threads;
  for (auto& copy : copies)
    threads.emplace_back([&file, &copy] {
      for (int i = 0; i < 200; ++i) file.read(file.at("a"), copy.data());
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& copy : copies) EXPECT_EQ(copy, (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(SafetensorsFile, StaysUsableWhenMoved) {
  const TemporaryFolder folder;
  std::vector<SafetensorsFile> files;
  for (int i = 0; i < 5; ++i) files.emplace_back(folder.write("f", small_file()));
  for (const SafetensorsFile& file : files) EXPECT_EQ(file.at("b").elements(), 4);
}

TEST(SafetensorsFile, MissingFile) {
  EXPECT_TRUE(contains(open_error("no/model.safetensors"), "cannot read no/model.safetensors"));
}

TEST(SafetensorsFile, TruncatedAnywhere) {
  const TemporaryFolder folder;
  const std::string whole = small_file();
  for (size_t size = 0; size < whole.size(); ++size) {
    const fs::path path = folder.write("f", whole.substr(0, size));
    EXPECT_TRUE(contains(open_error(path), "truncated")) << size;
  }
}

TEST(SafetensorsFile, SurplusBytes) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(open_error(folder.write("f", small_file() + "x")),
                       "describes 40 bytes of data, but the file holds 41"));
}

TEST(SafetensorsFile, HeaderLengthsThatLie) {
  const TemporaryFolder folder;
  std::string text = small_file();
  text[2] = 1;
  EXPECT_TRUE(contains(open_error(folder.write("f", text)), "but the file has only"));
  text[7] = '\x7f';
  EXPECT_TRUE(contains(open_error(folder.write("f", text)),
                       "more than the 100000000 that the format allows"));
  EXPECT_TRUE(contains(
      open_error(folder.write("f", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")),
      "a Git LFS pointer"));
}

TEST(SafetensorsFile, ShrinksWhileItIsRead) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("f", small_file());
  const SafetensorsFile file(path);
  fs::resize_file(path, fs::file_size(path) - 4);
  std::vector<float> values(4);
  EXPECT_TRUE(contains(user_error_of([&] { file.read(file.at("b"), values.data()); }),
                       "truncated or was changed while it was read"));
}

}  // namespace
}  // namespace snug::formats
