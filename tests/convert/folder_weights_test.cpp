// A model folder as a source of weights, written as another folder.
#include "convert/source/folder_weights.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/temporary_folder.h"
#include "convert/folder/dequantize_folder.h"
#include "convert/folder/write_folder.h"
#include "runtime/mxfp4_folder.h"

namespace snug::convert {
namespace {

using testing::TemporaryFolder;

std::vector<uint8_t> tensor_in(const formats::TensorIndex& index, const std::string& name) {
  const formats::IndexedTensor& tensor = index.at(name);
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.info->bytes()));
  index.read(tensor, bytes.data());
  return bytes;
}

TEST(FolderWeights, OfExpertsInMxfp4AreWhatDequantizingGives) {
  const TemporaryFolder folder;
  testing::make_mxfp4_folder(folder / "in");
  const FolderWeights weights(folder / "in");
  EXPECT_FALSE(weights.config().contains("quantization_config"));
  write_folder(weights, {}, folder / "written");
  FolderDequantizer(folder / "in").write(folder / "dequantized");
  const formats::TensorIndex written(folder / "written");
  const formats::TensorIndex expected(folder / "dequantized");
  EXPECT_EQ(written.tensors().size(), expected.tensors().size());
  for (const auto& tensor : expected.tensors())
    EXPECT_EQ(tensor_in(written, tensor.info->name), tensor_in(expected, tensor.info->name))
        << tensor.info->name;
  EXPECT_EQ(models::find_model((folder / "written").string()).config.num_experts, 3);
}

// A single expert, and rows of a weight from the middle.
TEST(FolderWeights, RowsAreReadAlone) {
  const TemporaryFolder folder;
  testing::make_mxfp4_folder(folder / "in");
  const FolderWeights weights(folder / "in");
  for (const SourceTensor& tensor : weights.tensors()) {
    std::vector<float> whole(static_cast<size_t>(tensor.elements()));
    weights.read(tensor, 0, tensor.rows(), whole);
    const int64_t first = tensor.rows() / 2;
    std::vector<float> rest(static_cast<size_t>((tensor.rows() - first) * tensor.row_elements()));
    weights.read(tensor, first, tensor.rows() - first, rest);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + first * tensor.row_elements()))
        << tensor.name;
  }
}

}  // namespace
}  // namespace snug::convert
