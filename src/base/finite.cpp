// Adding one to the exponent of such a value, and of no other, reaches the bit of the sign: three
// vector instructions an element, over chunks that stay in the cache while one is searched.
#include "base/finite.h"

#include <algorithm>

namespace snug::base {
namespace {

template <typename Bits>
constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));

// `one`: the lowest bit of the exponent.
template <typename Bits>
Bits carried(Bits value, Bits one) {
  return static_cast<Bits>(static_cast<Bits>(value & static_cast<Bits>(~kSign<Bits>)) + one);
}

template <typename Bits>
std::optional<int64_t> first_of(const void* values, int64_t elements, Bits one) {
  constexpr int64_t kChunkElements = 4096;
  const auto* bits = static_cast<const Bits*>(values);
  for (int64_t first = 0; first < elements; first += kChunkElements) {
    const int64_t end = std::min(elements, first + kChunkElements);
    Bits any = 0;
    for (int64_t i = first; i < end; ++i) any |= carried(bits[i], one);
    if ((any & kSign<Bits>) == 0) continue;
    for (int64_t i = first; i < end; ++i)
      if ((carried(bits[i], one) & kSign<Bits>) != 0) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> first_not_finite(DType type, const void* values, int64_t elements) {
  switch (type) {
    case DType::f64:
      return first_of<uint64_t>(values, elements, uint64_t{1} << 52);
    case DType::f32:
      return first_of<uint32_t>(values, elements, uint32_t{1} << 23);
    case DType::bf16:
      return first_of<uint16_t>(values, elements, uint16_t{1} << 7);
    case DType::f16:
      return first_of<uint16_t>(values, elements, uint16_t{1} << 10);
    default:
      return std::nullopt;
  }
}

}  // namespace snug::base
