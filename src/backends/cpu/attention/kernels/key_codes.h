// Keys and values in 8 bits.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct KeyCodesKernels {
  // Turns the n elements of one head of a row into codes; returns their scale
  // (backends/formulas/key_codes.h).
  float (*encode[kElements])(const void* x, int64_t n, int8_t* codes);
};

}  // namespace snug::backends::cpu
