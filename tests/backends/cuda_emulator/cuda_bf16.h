// Stands in for CUDA's header of the same name.
#pragma once

#include "base/dtype.h"

struct __nv_bfloat16 {
  unsigned short bits;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return {snug::base::to_bfloat16(value).bits};
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
