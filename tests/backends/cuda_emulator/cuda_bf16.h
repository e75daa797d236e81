// Stands in for CUDA's header of the same name.
#pragma once

#include "base/dtype.h"

struct __nv_bfloat16 {
  unsigned short bits;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return {snug::base::to_bfloat16(value).bits};
}
struct __nv_bfloat162 {
  __nv_bfloat16 x;
  __nv_bfloat16 y;
};
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
