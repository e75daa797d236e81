#include "backends/host_fill.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace snug::backends {
namespace {

void store(float value, float& to) { to = value; }
void store(float value, base::BFloat16& to) { to = base::to_bfloat16(value); }
void store(float value, base::Float16& to) { to = base::to_float16(value); }

template <typename T>
void fill_elements(T* to, const RandomValues& values, int64_t first, const ElementRange& range) {
  const auto root = [](float x) { return std::sqrt(x); };
  for (int64_t begin = range.begin; begin < range.end; begin += kValueGroup) {
    const ValueGroup four = value_group(values, (first + begin) / kValueGroup, root);
    const int64_t count = std::min(range.end - begin, kValueGroup);
    for (int64_t i = 0; i < count; ++i) store(four[static_cast<size_t>(i)], to[begin + i]);
  }
}

}  // namespace

void fill_on_host(const Buffer& tensor, const RandomValues& values, int64_t first,
                  const ElementRange& range) {
  if (tensor.dtype == base::DType::f32)
    return fill_elements(tensor.as<float>(), values, first, range);
  if (tensor.dtype == base::DType::f16)
    return fill_elements(tensor.as<base::Float16>(), values, first, range);
  SNUG_CHECK(tensor.dtype == base::DType::bf16, "random values in a tensor of {}",
             base::name_of(tensor.dtype));
  fill_elements(tensor.as<base::BFloat16>(), values, first, range);
}

}  // namespace snug::backends
