// A read of a tensor, or of a range of its elements, and its destination.
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

// Reads one tensor of an index into a contiguous destination with the same number of elements. A
// weight that is quantised while loading goes to `stored`; its destination has the weight's shape
// and no data. A tensor with neither destination is only read and verified.
struct TensorRead {
  const formats::IndexedTensor* source = nullptr;
  backends::Buffer destination;
  std::optional<StoredWeight> stored{};
  bool holds_values = true;  // false: raw bytes, whatever element type the file declares
  bool keeps_bytes = false;  // the file holds the weight in its stored form already
  std::optional<std::span<const uint64_t>> checksums{};  // of the tensor's pieces, if known
  backends::Trace* trace = nullptr;  // records the bytes that are written; null: not recorded
  // The shape of the tensor in the file where only a range is read: elements from `first` on, as
  // many as the destination has.
  std::optional<program::Shape> whole{};
  int64_t first = 0;
  bool is_counted = true;  // counts in the digest; false: another rank counts it
  bool transposed =
      false;  // the elements are those of the transpose of the file's matrix, in its order

  const program::Shape& file_shape() const { return whole ? *whole : destination.shape; }
  int64_t width() const { return base::size_of(*source->info->dtype); }  // width in the file
  // The range [first_byte, end_byte) of the tensor's bytes that is read.
  int64_t first_byte() const { return first * width(); }
  int64_t end_byte() const { return first_byte() + destination.elements() * width(); }
};

// A read that only verifies the tensor.
TensorRead without_destination(const formats::IndexedTensor& source);

// The contribution of a piece of a tensor, starting at this byte, to a digest.
uint64_t digest_of(std::string_view tensor, int64_t first_byte, uint64_t checksum);

// Throws UserError unless the file holds this tensor in a float type and in the expected shape.
// `reason` says where the shape comes from: "as config.json says".
void check_read(const formats::TensorIndex& index, const TensorRead& read,
                const std::string& reason);

}  // namespace snug::runtime
