#include "runtime/storage/tensor_part.h"

#include <algorithm>
#include <array>

#include "backends/backend.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "program/ir/tensor_names.h"

namespace snug::runtime {

using backends::Buffer;
using program::Tensor;

Buffer slice(const Buffer& buffer, int64_t begin, int64_t elements) {
  Buffer part = buffer;
  part.data = buffer.data + begin * base::size_of(buffer.dtype);
  part.shape = {elements};
  part.strides = program::dense_strides(part.shape);
  part.first = buffer.first + begin;
  return part;
}

namespace {

// How many of `elements` elements, from `first` on, belong to the tensor; the rest is padding.
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

}  // namespace snug::runtime
