#include "backends/cpu/attention/kernels/key_codes.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"
#include "backends/formulas/key_codes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// 1.5 * 2^23: a sum with it is rounded to a whole number, to nearest with ties to even.
constexpr float kRounder = 12582912.0F;

struct Magnitude {
  float largest;
  bool is_finite;
};

template <typename X>
SNUG_INLINE Magnitude magnitude_of(const X* x, int64_t n) {
  Float16Lanes largest = {};
  Float16Lanes zeros = {};  // NaN after an element that is not finite
  for_each_lanes(n, [&](int64_t i, auto part) {
    const Float16Lanes value = load(x + i, part);
    largest = maximum(largest, maximum(value, -1.0F * value));
    zeros += value * 0.0F;
  });
  return {reduce_max(largest), reduce_add(zeros) == 0.0F};
}

template <typename X>
float encode(const void* elements, int64_t n, int8_t* codes) {
  const X* x = static_cast<const X*>(elements);
  const Magnitude magnitude = magnitude_of(x, n);
  if (!magnitude.is_finite || magnitude.largest < kMinMagnitude) {
    for (int64_t i = 0; i < n; ++i) codes[i] = 0;
    return magnitude.is_finite ? 0.0F : __builtin_nanf("");
  }
  const float inverse = kLargestCode / magnitude.largest;
  for_each_lanes(n, [&](int64_t i, auto part) {
    float product[kLanes];
    store(product, load(x + i, part) * inverse);
    const int64_t count = smaller_of(kLanes, n - i);
    for (int64_t j = 0; j < count; ++j)
      codes[i + j] = static_cast<int8_t>(static_cast<int32_t>(product[j] + kRounder - kRounder));
  });
  return magnitude.largest / kLargestCode;
}

}  // namespace

extern const KeyCodesKernels kKeyCodesKernels;
const KeyCodesKernels kKeyCodesKernels = {.encode = SNUG_BY_ELEMENT(encode)};

}  // namespace snug::backends::cpu::SNUG_ISA
