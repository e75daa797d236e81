#include "runtime/save_tensors.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "formats/tensor_index.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> dims_of(const program::Shape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

[[noreturn]] void fail_read_back(const formats::TensorIndex& index,
                                 const formats::IndexedTensor& tensor) {
  base::throw_user_error(
      "{}: tensor '{}' does not read back as it was written; nothing was kept of this save. The "
      "disk or its file system is faulty, write to another one",
      index.path_of(tensor).string(), tensor.info->name);
}

void compare(const formats::TensorIndex& index, const SavedTensor& tensor, std::byte* slot) {
  const formats::IndexedTensor& stored = index.at(tensor.name);
  const int64_t bytes = tensor.buffer.bytes();
  if (stored.info->bytes() != bytes || stored.info->dtype != tensor.buffer.dtype ||
      stored.info->shape != dims_of(tensor.buffer.shape))
    fail_read_back(index, stored);
  for (int64_t done = 0; done < bytes; done += plan::kLoadSlotBytes) {
    const int64_t piece = std::min(bytes - done, plan::kLoadSlotBytes);
    index.read_range(stored, done, piece, slot);
    if (std::memcmp(slot, tensor.buffer.data + done, static_cast<size_t>(piece)) != 0)
      fail_read_back(index, stored);
  }
}

}  // namespace

void write_tensors(const fs::path& folder, const std::string& stem,
                   std::span<const SavedTensor> tensors, int64_t max_shard_bytes) {
  std::vector<formats::TensorSpec> specs;
  for (const SavedTensor& tensor : tensors)
    specs.push_back({tensor.name, tensor.buffer.dtype, dims_of(tensor.buffer.shape)});
  formats::ModelWriter writer(folder, specs, max_shard_bytes, stem);
  for (const SavedTensor& tensor : tensors)
    writer.write(tensor.name, tensor.buffer.data, tensor.buffer.bytes());
  writer.finish();
}

void read_back(const fs::path& folder, const std::string& stem,
               std::span<const SavedTensor> tensors, Executor& executor) {
  const formats::TensorIndex index(folder, stem);
  std::byte* slot = executor.tensor("load", "load.slot.0").data;
  for (const SavedTensor& tensor : tensors) compare(index, tensor, slot);
}

}  // namespace snug::runtime
