// A tensor of a file, or a range of its elements, and where they go.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/invocation.h"
#include "formats/folder/tensor_index.h"
#include "runtime/loading/stored_weight.h"

namespace snug::runtime {

// One tensor of an index and where it goes: the same number of elements, contiguous. A weight that
// is quantised on the way goes to `stored`; its destination has the weight's shape and no data. One
// without either is read and looked at, no more.
struct TensorRead {
  const formats::IndexedTensor* source = nullptr;
  backends::Buffer destination;
  std::optional<StoredWeight> stored{};
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
