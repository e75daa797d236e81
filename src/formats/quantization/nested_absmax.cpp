// Quantises the absmax of NF4 blocks to 8 bits. Sums are added in the same order as in torch's CPU
// kernel for a contiguous fp32 tensor: four vectors of 8 lanes in parallel, accumulated in levels
// so that errors do not grow with the length; then the four vectors are added, then the elements
// that fill no vector, then the lanes.
#include "formats/quantization/nf4.h"

#include "base/dynamic_map.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace snug::formats {
namespace {

constexpr int kLanes = 8;
constexpr int kSideBySide = 4;
constexpr int kLevels = 4;

template <int lanes>
using Sums = std::array<float, lanes>;

template <int lanes>
void add(const float* values, Sums<lanes>& sums) {
  for (size_t lane = 0; lane < lanes; ++lane) sums[lane] += values[lane];
}

// Level 0 accumulates 2^power rows and is then added to level 1, which after as many additions is
// added to level 2, and so on.
template <int lanes>
Sums<lanes * kSideBySide> sum_in_levels(const float* values, int64_t rows) {
  constexpr int kWidth = lanes * kSideBySide;
  const int log = rows > 2 ? static_cast<int>(std::bit_width(static_cast<uint64_t>(rows - 1))) : 1;
  const int power = std::max(4, log / kLevels);
  const int64_t step = int64_t{1} << power;
  std::array<Sums<kWidth>, kLevels> levels{};
  int64_t row = 0;
  while (row + step <= rows) {
    for (const int64_t end = row + step; row < end; ++row)
      add<kWidth>(values + row * kWidth, levels[0]);
    for (size_t level = 1; level < kLevels; ++level) {
      add<kWidth>(levels[level - 1].data(), levels[level]);
      levels[level - 1] = {};
      if ((row & ((step - 1) << (static_cast<int>(level) * power))) != 0) break;
    }
  }
  for (; row < rows; ++row) add<kWidth>(values + row * kWidth, levels[0]);
  for (size_t level = 1; level < kLevels; ++level) add<kWidth>(levels[level].data(), levels[0]);
  return levels[0];
}

template <int lanes>
Sums<lanes> sum_rows(const float* values, int64_t rows) {
  const int64_t whole = rows / kSideBySide;
  auto wide = sum_in_levels<lanes>(values, whole);
  Sums<lanes> sums{};
  std::copy_n(wide.begin(), lanes, sums.begin());
  for (int64_t row = whole * kSideBySide; row < rows; ++row) add<lanes>(values + row * lanes, sums);
  for (int other = 1; other < kSideBySide; ++other) add<lanes>(wide.data() + other * lanes, sums);
  return sums;
}

// base::encode_dynamic_lattice distinguishes only 65,536 inputs; a table of its results is several
// times faster.
class LatticeTable {
 public:
  LatticeTable() {
    for (size_t point = 0; point < codes_.size(); ++point)
      codes_[point] = base::encode_dynamic_lattice(base::signed_dynamic_map(),
                                                   static_cast<float>(point) / kLast * 2.0F - 1.0F);
  }
  uint8_t code(float x) const {
    const float unit = (std::min(std::max(-1.0F, x), 1.0F) + 1.0F) * 0.5F;  // NaN counts as -1
    return codes_[static_cast<size_t>(static_cast<int32_t>(unit * kLast + 0.5F))];
  }

 private:
  static constexpr float kLast = 65535.0F;
  std::array<uint8_t, 65536> codes_{};
};

float sum(const float* values, int64_t count) {
  if (count < kLanes) return sum_rows<1>(values, count)[0];
  const int64_t rows = count / kLanes;
  const Sums<kLanes> lanes = sum_rows<kLanes>(values, rows);
  float total = 0.0F;
  for (int64_t i = rows * kLanes; i < count; ++i) total += values[i];
  for (const float lane : lanes) total += lane;
  return total;
}

}  // namespace

float mean_absmax(const float* absmax, int64_t blocks) {
  return sum(absmax, blocks) / static_cast<float>(blocks);
}

void quantize_absmax(const float* absmax, int64_t blocks, float offset, uint8_t* codes,
                     float* nested_absmax) {
  static const LatticeTable table;
  for (int64_t begin = 0; begin < blocks; begin += kNestedBlockSize) {
    const int64_t end = std::min(begin + kNestedBlockSize, blocks);
    float largest = 0.0F;
    for (int64_t i = begin; i < end; ++i)
      largest = std::max(largest, std::fabs(absmax[i] - offset));
    nested_absmax[begin / kNestedBlockSize] = largest;
    const float scale = 1.0F / largest;
    for (int64_t i = begin; i < end; ++i)
      codes[i] = largest == 0.0F ? uint8_t{0} : table.code((absmax[i] - offset) * scale);
  }
}

float quantize_absmax(const float* absmax, int64_t blocks, uint8_t* codes, float* nested_absmax) {
  const float offset = mean_absmax(absmax, blocks);
  quantize_absmax(absmax, blocks, offset, codes, nested_absmax);
  return offset;
}

}  // namespace snug::formats
