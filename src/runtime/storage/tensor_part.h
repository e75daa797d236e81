// What of a tensor that is sharded or padded (program::Tensor::whole) a rank has: which of its
// memory holds elements of the tensor, which is padding, and which of them it writes to files; and
// what is read of a file's tensor, and where it goes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/invocation.h"
#include "comm/mesh.h"
#include "formats/folder/tensor_index.h"
#include "plan/job/job.h"
#include "program/ir/tensor.h"
#include "runtime/loading/stored_weight.h"

namespace snug::runtime {

// A shape as files have it: a list of sizes.
std::vector<int64_t> dims_of(const program::Shape& shape);

// `elements` elements of a contiguous buffer from its element `begin` on, flat; `first` goes on.
backends::Buffer slice(const backends::Buffer& buffer, int64_t begin, int64_t elements);

// The tensor's elements in its buffer on this rank, flat; `first` is the index of the first of them
// in the whole tensor. For a tensor that is not sharded it is the whole buffer.
backends::Buffer held_part(const program::Tensor& tensor, const backends::Buffer& buffer);
// The rest of the buffer, which is padding.
backends::Buffer padding(const program::Tensor& tensor, const backends::Buffer& buffer);

// The elements that this rank writes where the ranks of a replica write a tensor together: its part
// of a sharded or padded tensor; of any other tensor everything on the first rank, and nothing on
// the others.
backends::Buffer written_part(const program::Tensor& tensor, const backends::Buffer& buffer,
                              const comm::Mesh& mesh);

// Sets a buffer of a job's tensor to the code for the number 0: an 8-bit first moment encodes it by
// another byte than 0. Returns the size of the buffer in bytes.
int64_t set_zero(const plan::Job& job, const program::Tensor& tensor,
                 const backends::Buffer& buffer, backends::Backend& backend);

// One tensor of an index and where it goes: the same number of elements, contiguous. A weight that
// is quantised on the way goes to `stored`; its destination has the weight's shape and no data. One
// without either is read and looked at, no more.
struct TensorRead {
  const formats::IndexedTensor* source = nullptr;
  backends::Buffer destination;
  std::optional<StoredWeight> stored{};
  // Of a stored weight that several tensors of the files make up, one read after the other: the
  // element of what `stored` holds with which this one begins, and whether it goes on with the
  // weight of the read before it.
  int64_t stored_first = 0;
  bool continues = false;
  bool holds_values = true;  // false: bytes, whatever type the file views them as
  bool keeps_bytes = false;  // of a weight that the file holds as it is stored
  std::optional<std::span<const uint64_t>> checksums{};  // of its pieces, where they are known
  backends::Trace* trace = nullptr;  // where bytes that are put in place are added; null: nowhere
  // The shape that the file's tensor has, where only the elements from `first` on, as many as the
  // destination has, are read of it.
  std::optional<program::Shape> whole{};
  int64_t first = 0;
  bool is_counted = true;  // in the digest; false: another rank counts it
  bool transposed =
      false;  // elements are those of the transpose of the file's matrix, in its order

  const program::Shape& file_shape() const { return whole ? *whole : destination.shape; }
  int64_t width() const { return base::size_of(*source->info->dtype); }  // in the file
  // The range of the tensor's bytes that is read.
  int64_t first_byte() const { return first * width(); }
  int64_t end_byte() const { return first_byte() + destination.elements() * width(); }
};

// The read of a tensor that is only verified.
TensorRead without_destination(const formats::IndexedTensor& source);

// What a piece of a tensor, from this byte on, adds to a digest.
uint64_t digest_of(std::string_view tensor, int64_t first_byte, uint64_t checksum);

// Throws UserError unless the file holds this tensor in a float type and in the shape that is
// expected. `reason` says where that comes from: "as config.json says".
void check_read(const formats::TensorIndex& index, const TensorRead& read,
                const std::string& reason);

}  // namespace snug::runtime
