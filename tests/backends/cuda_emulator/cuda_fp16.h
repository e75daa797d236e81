// Stands in for CUDA's header of the same name.
#pragma once

#include "base/dtype.h"

struct __half {
  unsigned short bits;
};

inline __half __float2half_rn(float value) { return {snug::base::to_float16(value).bits}; }
inline float __half2float(__half value) {
  return snug::base::to_float(snug::base::Float16{value.bits});
}
struct __half2 {
  __half x;
  __half y;
};
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
