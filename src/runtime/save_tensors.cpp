#include "runtime/save_tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/tensor_index.h"
#include "runtime/host_window.h"

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

void compare(const formats::TensorIndex& index, const SavedTensor& tensor, std::byte* slot,
             HostWindow& window) {
  const formats::IndexedTensor& stored = index.at(tensor.name);
  const int64_t bytes = tensor.buffer.bytes();
  if (stored.info->bytes() != bytes || stored.info->dtype != tensor.buffer.dtype ||
      stored.info->shape != dims_of(tensor.buffer.shape))
    fail_read_back(index, stored);
  for (int64_t done = 0; done < bytes; done += plan::kLoadSlotBytes) {
    const int64_t piece = std::min(bytes - done, plan::kLoadSlotBytes);
    index.read_range(stored, done, piece, slot);
    const std::byte* const own = window.read(tensor.buffer.data + done, piece);
    if (std::memcmp(slot, own, static_cast<size_t>(piece)) != 0) fail_read_back(index, stored);
  }
}

// Calls f(buffer) over a contiguous tensor in flat pieces that the host may read.
template <typename F>
void read_pieces(const backends::Buffer& tensor, HostWindow& window, F&& f) {
  const int64_t width = base::size_of(tensor.dtype);
  const int64_t most = window.capacity_bytes() / width;
  for (int64_t first = 0; first < tensor.elements(); first += most) {
    backends::Buffer piece = tensor;
    piece.shape = {std::min(most, tensor.elements() - first)};
    piece.data = const_cast<std::byte*>(window.read(tensor.data + first * width, piece.bytes()));
    f(std::as_const(piece));
  }
}

// Values whose exponent bits are all set: infinite, or not a number. A pass over the memory.
template <typename Bits, typename Value>
int64_t count_not_finite(const backends::Buffer& buffer, Bits exponent) {
  const Value* values = buffer.as<Value>();
  int64_t count = 0;
  for (int64_t i = 0; i < buffer.elements(); ++i)
    count += (std::bit_cast<Bits>(values[i]) & exponent) == exponent ? 1 : 0;
  return count;
}

int64_t count_not_finite(const backends::Buffer& buffer) {
  switch (buffer.dtype) {
    case program::DType::f32:
      return count_not_finite<uint32_t, float>(buffer, 0x7f800000U);
    case program::DType::bf16:
      return count_not_finite<uint16_t, base::BFloat16>(buffer, 0x7f80);
    case program::DType::f16:
      return count_not_finite<uint16_t, uint16_t>(buffer, 0x7c00);
    default:
      return 0;
  }
}

}  // namespace

void require_finite(std::span<const SavedTensor> tensors, Executor& executor) {
  HostWindow window(executor, 0);
  for (const SavedTensor& tensor : tensors) {
    int64_t count = 0;
    read_pieces(tensor.buffer, window,
                [&](const backends::Buffer& piece) { count += count_not_finite(piece); });
    if (count > 0)
      base::throw_user_error(
          "tensor '{}': {} of its {} values are not finite, so nothing was saved and what was "
          "saved "
          "before stays; lower learning_rate or lengthen the warm-up, and go on from the last "
          "checkpoint with resume_from_checkpoint=auto",
          tensor.name, count, tensor.buffer.elements());
  }
}

void write_tensors(const fs::path& folder, const std::string& stem,
                   std::span<const SavedTensor> tensors, Executor& executor,
                   int64_t max_shard_bytes) {
  std::vector<formats::TensorSpec> specs;
  for (const SavedTensor& tensor : tensors)
    specs.push_back({tensor.name, tensor.buffer.dtype, dims_of(tensor.buffer.shape)});
  formats::ModelWriter writer(folder, specs, max_shard_bytes, stem);
  HostWindow window(executor, 0);
  for (const SavedTensor& tensor : tensors)
    read_pieces(tensor.buffer, window, [&](const backends::Buffer& piece) {
      writer.write(tensor.name, piece.data, piece.bytes());
    });
  writer.finish();
}

void read_back(const fs::path& folder, const std::string& stem,
               std::span<const SavedTensor> tensors, Executor& executor) {
  const formats::TensorIndex index(folder, stem);
  std::byte* slot = executor.tensor("load", "load.slot.0").data;
  HostWindow window(executor, 0);
  for (const SavedTensor& tensor : tensors) compare(index, tensor, slot, window);
}

}  // namespace snug::runtime
