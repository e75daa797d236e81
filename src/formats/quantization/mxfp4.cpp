#include "formats/quantization/mxfp4.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"

namespace snug::formats {
namespace {

constexpr std::string_view kBlocksEnd = "_blocks";
constexpr std::string_view kScalesEnd = "_scales";

constexpr std::array<float, 16> kFp4Values{0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                           -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
constexpr int kScaleBias = 127;
constexpr uint8_t kNoScale = 255;

// The number of rows of the matrix that are decoded together, so that writes are contiguous.
constexpr int64_t kTileRows = 64;

float scale_of(uint8_t exponent) {
  if (exponent == kNoScale) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, exponent - kScaleBias);
}

void check_part(const TensorIndex& index, const IndexedTensor& part,
                const std::vector<int64_t>& shape) {
  const TensorInfo& info = *part.info;
  if (info.shape != shape || info.dtype != base::DType::u8)
    base::throw_user_error("{}: tensor '{}' is {} of {}; expected {} of U8, as config.json says",
                           index.path_of(part).string(), info.name, shape_text(info.shape),
                           info.stored_dtype, shape_text(shape));
}

// Decodes one block of 32 elements for each of `rows` rows, starting at `row`.
void decode_block(const Mxfp4Matrix& matrix, int64_t row, int64_t rows, int64_t block,
                  base::BFloat16* values) {
  const int64_t blocks = matrix.in / kMxfp4BlockSize;
  std::array<std::array<base::BFloat16, kTileRows>, kMxfp4BlockSize> tile;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t number = (row + i) * blocks + block;
    const uint8_t* codes = matrix.blocks + number * kMxfp4BlockBytes;
    const float scale = scale_of(matrix.scales[number]);
    for (int64_t byte = 0; byte < kMxfp4BlockBytes; ++byte) {
      const auto at = static_cast<size_t>(2 * byte);
      tile[at][i] = base::to_bfloat16(kFp4Values[codes[byte] & 15U] * scale);
      tile[at + 1][i] = base::to_bfloat16(kFp4Values[codes[byte] >> 4U] * scale);
    }
  }
  for (int64_t k = 0; k < kMxfp4BlockSize; ++k)
    std::copy_n(tile[static_cast<size_t>(k)].data(), rows,
                values + (block * kMxfp4BlockSize + k) * matrix.out + row);
}

}  // namespace

std::optional<std::string_view> mxfp4_stack_of(std::string_view name) {
  for (const std::string_view end : {kBlocksEnd, kScalesEnd})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return std::nullopt;
}

std::optional<Mxfp4Parts> find_mxfp4(const TensorIndex& index, std::string_view name,
                                     int64_t matrices, int64_t out, int64_t in) {
  const std::string blocks_name = fmt::format("{}{}", name, kBlocksEnd);
  const std::string scales_name = fmt::format("{}{}", name, kScalesEnd);
  if (index.find(blocks_name) == nullptr && index.find(scales_name) == nullptr) return std::nullopt;
  const Mxfp4Parts parts{&index.at(blocks_name), &index.at(scales_name)};
  if (in % kMxfp4BlockSize != 0)
    base::throw_user_error("{}: '{}' has rows of {} elements; MXFP4 has blocks of {}",
                           index.path_of(*parts.blocks).string(), name, in, kMxfp4BlockSize);
  check_part(index, *parts.blocks, {matrices, out, in / kMxfp4BlockSize, kMxfp4BlockBytes});
  check_part(index, *parts.scales, {matrices, out, in / kMxfp4BlockSize});
  return parts;
}

void decode_transposed(const Mxfp4Matrix& matrix, base::BFloat16* values) {
  for (int64_t row = 0; row < matrix.out; row += kTileRows)
    for (int64_t block = 0; block < matrix.in / kMxfp4BlockSize; ++block)
      decode_block(matrix, row, std::min(kTileRows, matrix.out - row), block, values);
}

}  // namespace snug::formats
