#include "runtime/loading/tensor_read.h"

#include <array>

#include "base/checksum.h"
#include "base/error.h"
#include "runtime/storage/file_shape.h"

namespace snug::runtime {
namespace {

using backends::Buffer;

bool is_contiguous(const Buffer& buffer) {
  int64_t stride = 1;
  for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
    if (buffer.shape[axis] != 1 && buffer.strides[static_cast<size_t>(axis)] != stride)
      return false;
    stride *= buffer.shape[axis];
  }
  return true;
}

}  // namespace

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
