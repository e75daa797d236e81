#include "runtime/storage/tensor_part.h"

#include <algorithm>
#include <array>

#include "backends/backend.h"
#include "base/checksum.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "program/ir/tensor_names.h"

namespace snug::runtime {

using backends::Buffer;
using program::Tensor;

std::vector<int64_t> dims_of(const program::Shape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

Buffer slice(const Buffer& buffer, int64_t begin, int64_t elements) {
  Buffer part = buffer;
  part.data = buffer.data + begin * base::size_of(buffer.dtype);
  part.shape = {elements};
  part.strides = program::dense_strides(part.shape);
  part.first = buffer.first + begin;
  return part;
}

namespace {

bool is_contiguous(const Buffer& buffer) {
  int64_t stride = 1;
  for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
    if (buffer.shape[axis] != 1 && buffer.strides[static_cast<size_t>(axis)] != stride)
      return false;
    stride *= buffer.shape[axis];
  }
  return true;
}

// How many of `elements`, from `first` on, are the tensor's own.
int64_t valid_elements(const Tensor& tensor, int64_t first, int64_t elements) {
  return std::clamp<int64_t>(program::whole_shape(tensor).elements() - first, 0, elements);
}

// Second moments use the unsigned map, in which 0 encodes the number 0.
bool is_signed_code(const plan::Job& job, const Tensor& tensor) {
  if (tensor.role != program::Role::moment || tensor.dtype != base::DType::u8) return false;
  return std::ranges::any_of(job.trainables, [&](const Tensor& trainable) {
    return tensor.name == program::first_moment_name(trainable.name);
  });
}

}  // namespace

Buffer held_part(const Tensor& tensor, const Buffer& buffer) {
  if (!tensor.is_sharded()) return buffer;
  return slice(buffer, 0, valid_elements(tensor, buffer.first, buffer.elements()));
}

Buffer padding(const Tensor& tensor, const Buffer& buffer) {
  const int64_t held = held_part(tensor, buffer).elements();
  return slice(buffer, held, buffer.elements() - held);
}

Buffer written_part(const Tensor& tensor, const Buffer& buffer, const comm::Mesh& mesh) {
  const int shards = comm::Mesh::size_of(mesh.shards);
  if (shards == 1) return held_part(tensor, buffer);
  if (!tensor.is_sharded()) return mesh.shard() == 0 ? buffer : slice(buffer, 0, 0);
  if (tensor.rank_step > 0) return held_part(tensor, buffer);
  const int64_t elements = buffer.elements() / shards;
  SNUG_CHECK_EQ(elements * shards, buffer.elements());
  const int64_t first = elements * mesh.shard();
  return slice(buffer, first, valid_elements(tensor, first, elements));
}

int64_t set_zero(const plan::Job& job, const Tensor& tensor, const Buffer& buffer,
                 backends::Backend& backend) {
  static constexpr std::array<std::byte, 4096> kZeroBytes{};
  static const std::array<std::byte, 4096> kZeroCodes = [] {
    std::array<std::byte, 4096> codes{};
    codes.fill(std::byte{base::encode_dynamic(base::signed_dynamic_map(), 0.0F)});
    return codes;
  }();
  const auto& zeros = is_signed_code(job, tensor) ? kZeroCodes : kZeroBytes;
  const int64_t bytes = buffer.bytes();
  for (int64_t done = 0; done < bytes; done += std::ssize(zeros))
    backend.copy(buffer.data + done, zeros.data(), std::min(bytes - done, std::ssize(zeros)));
  return bytes;
}

void check_read(const formats::TensorIndex& index, const TensorRead& read,
                const std::string& reason) {
  const formats::TensorInfo& info = *read.source->info;
  const std::string file = index.path_of(*read.source).string();
  const std::vector<int64_t> expected = dims_of(read.file_shape());
  if (info.shape != expected)
    base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, {}", file, info.name,
                           formats::shape_text(info.shape), formats::shape_text(expected), reason);
  const bool is_stored = !read.stored && info.dtype == read.destination.dtype;
  if (!is_stored && (!info.dtype || !base::is_float(*info.dtype)))
    base::throw_user_error(
        "{}: tensor '{}' is stored as {}; expected F32, BF16, F16 or F64. Use a folder with the "
        "weights in 16 or 32 bits",
        file, info.name, info.stored_dtype);
  SNUG_CHECK(is_contiguous(read.destination), "{} is not contiguous", info.name);
  SNUG_CHECK(read.first + read.destination.elements() <= info.elements(), "elements {} to {} of {}",
             read.first, read.first + read.destination.elements(), info.name);
}

TensorRead without_destination(const formats::IndexedTensor& source) {
  TensorRead read{&source, {}};
  read.destination.dtype = *source.info->dtype;
  read.destination.shape = {source.info->elements()};
  return read;
}

uint64_t digest_of(std::string_view tensor, int64_t first_byte, uint64_t checksum) {
  const std::array<uint64_t, 3> place{base::checksum(tensor), static_cast<uint64_t>(first_byte),
                                      checksum};
  return base::checksum(place.data(), sizeof place);
}

}  // namespace snug::runtime
