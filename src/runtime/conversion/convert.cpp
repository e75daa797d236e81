#include "runtime/conversion/convert.h"

#include <cstring>

#include "base/error.h"

namespace snug::runtime {
namespace {

using base::BFloat16;
using base::DType;
using base::Float16;

float load(float value) { return value; }
float load(double value) { return static_cast<float>(value); }
float load(BFloat16 value) { return base::to_float(value); }
float load(Float16 value) { return base::to_float(value); }

void store(float value, float& to) { to = value; }
void store(float value, BFloat16& to) { to = base::to_bfloat16(value); }
void store(float value, Float16& to) { to = base::to_float16(value); }

template <typename From, typename To>
void convert_elements(const void* source, void* destination, int64_t elements) {
  const auto* from = static_cast<const From*>(source);
  auto* to = static_cast<To*>(destination);
  for (int64_t i = 0; i < elements; ++i) store(load(from[i]), to[i]);
}

template <typename To>
void convert_to(DType from, const void* source, void* destination, int64_t elements) {
  switch (from) {
    case DType::f64:
      return convert_elements<double, To>(source, destination, elements);
    case DType::f32:
      return convert_elements<float, To>(source, destination, elements);
    case DType::bf16:
      return convert_elements<BFloat16, To>(source, destination, elements);
    case DType::f16:
      return convert_elements<Float16, To>(source, destination, elements);
    default:
      SNUG_CHECK(false, "no conversion from {}", base::name_of(from));
  }
}

}  // namespace

void convert(DType from, const void* source, DType to, void* destination, int64_t elements) {
  if (from == to) {
    std::memcpy(destination, source, static_cast<size_t>(elements * base::size_of(to)));
  } else if (to == DType::f32) {
    convert_to<float>(from, source, destination, elements);
  } else if (to == DType::f16) {
    convert_to<Float16>(from, source, destination, elements);
  } else {
    SNUG_CHECK(to == DType::bf16, "no conversion to {}", base::name_of(to));
    convert_to<BFloat16>(from, source, destination, elements);
  }
}

}  // namespace snug::runtime
