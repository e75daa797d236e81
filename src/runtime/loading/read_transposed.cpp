// Goes through the file row by row. In each row the requested elements are consecutive columns,
// which are read into a buffer that stays in a core's cache and scattered from there.
#include "runtime/loading/read_transposed.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/dtype.h"
#include "base/error.h"

namespace snug::runtime {
namespace {

// Large enough to read a row of a large linear at once.
constexpr int64_t kBufferBytes = int64_t{16} << 10;

// Element e of the transpose lies in column e / rows and row e % rows.
struct Range {
  int64_t rows;
  int64_t first;
  int64_t last;  // inclusive

  // The requested columns [begin, end) of a row.
  int64_t begin(int64_t row) const { return first / rows + (row < first % rows ? 1 : 0); }
  int64_t end(int64_t row) const { return last / rows + (row <= last % rows ? 1 : 0); }
};

// Copies elements to places that are `stride` bytes apart.
template <int64_t kWidth>
void spread(const std::byte* from, int64_t count, std::byte* to, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride, from + i * kWidth, kWidth);
}

void spread(int64_t width, const std::byte* from, int64_t count, std::byte* to, int64_t stride) {
  switch (width) {
    case 1:
      return spread<1>(from, count, to, stride);
    case 2:
      return spread<2>(from, count, to, stride);
    case 4:
      return spread<4>(from, count, to, stride);
    default:
      SNUG_CHECK_EQ(width, 8);
      return spread<8>(from, count, to, stride);
  }
}

}  // namespace

void read_transposed(const formats::TensorIndex& index, const formats::IndexedTensor& source,
                     int64_t first, int64_t count, std::byte* to) {
  const formats::TensorInfo& info = *source.info;
  SNUG_CHECK_EQ(info.shape.size(), size_t{2});
  if (count == 0) return;
  const int64_t columns = info.shape[1];
  const int64_t width = base::size_of(*info.dtype);
  const Range range{info.shape[0], first, first + count - 1};
  const int64_t most = kBufferBytes / width;
  std::array<std::byte, kBufferBytes> buffer;
  for (int64_t row = 0; row < range.rows; ++row)
    for (int64_t column = range.begin(row); column < range.end(row); column += most) {
      const int64_t taken = std::min(most, range.end(row) - column);
      index.read_range(source, (row * columns + column) * width, taken * width, buffer.data());
      spread(width, buffer.data(), taken, to + (column * range.rows + row - first) * width,
             range.rows * width);
    }
}

int64_t element_in_file(const formats::TensorInfo& matrix, int64_t element) {
  const int64_t rows = matrix.shape[0];
  return element % rows * matrix.shape[1] + element / rows;
}

}  // namespace snug::runtime
