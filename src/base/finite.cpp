// Adding one to the exponent of an infinity or a NaN, and of no other value, carries into the sign
// bit: three vector instructions per element, over chunks that stay in the cache while one is
// searched.
#include "base/finite.h"

#include <algorithm>

namespace snug::base {
namespace {

template <typename Bits>
constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));

// `one` is the lowest bit of the exponent.
template <typename Bits>
Bits carried(Bits value, Bits one) {
  return static_cast<Bits>(static_cast<Bits>(value & static_cast<Bits>(~kSign<Bits>)) + one);
}

// The bitwise or of all carried values; its sign bit tells whether any value is not finite.
template <typename Bits>
Bits joined(const Bits* bits, int64_t elements, Bits one) {
  Bits any = 0;
  for (int64_t i = 0; i < elements; ++i) any |= carried(bits[i], one);
  return any;
}

#if defined(__x86_64__)
// joined(), compiled for wider vectors.
template <typename Bits>
__attribute__((target("avx2"))) Bits joined_avx2(const Bits* bits, int64_t elements, Bits one) {
  Bits any = 0;
  for (int64_t i = 0; i < elements; ++i) any |= carried(bits[i], one);
  return any;
}

template <typename Bits>
auto best_joined() {
  return __builtin_cpu_supports("avx2") != 0 ? joined_avx2<Bits> : joined<Bits>;
}
#else
template <typename Bits>
auto best_joined() {
  return joined<Bits>;
}
#endif

template <typename Bits>
std::optional<int64_t> first_of(const void* values, int64_t elements, Bits one) {
  constexpr int64_t kChunkElements = 4096;
  static const auto joined_best = best_joined<Bits>();
  const auto* bits = static_cast<const Bits*>(values);
  for (int64_t first = 0; first < elements; first += kChunkElements) {
    const int64_t end = std::min(elements, first + kChunkElements);
    if ((joined_best(bits + first, end - first, one) & kSign<Bits>) == 0) continue;
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
