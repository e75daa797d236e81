// Short convolutions along tokens, of a block of rows and columns.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Rows [begin, end) and columns [0, columns) of x and y, whose rows are `stride` elements apart and
// begin at row 0. taps (rows): how many tokens the filter sees at each row; 0: the row is in no
// segment. w (columns, width).
struct CausalConvolutionRun {
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  const int32_t* taps = nullptr;
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t columns = 0;
  int64_t width = 0;
  bool plain = false;  // without silu
};

// The gradient of such a block. `rows`: of the whole tensor, since dx of a row needs dy of the rows
// after it. dw (columns, width) f32 has the sums over the block's rows; null: nobody asks for it.
struct CausalConvolutionGradRun {
  CausalConvolutionRun forward;  // y is dx
  const void* dy = nullptr;
  int64_t dy_stride = 0;
  int64_t rows = 0;
  float* dw = nullptr;
};

struct CausalConvolutionKernels {
  // x and y have one type; w's is the other.
  void (*forward[kElements][kElements])(const CausalConvolutionRun& run);
  // x, dy and dx have one type; w's is the other.
  void (*backward[kElements][kElements])(const CausalConvolutionGradRun& run);
};

}  // namespace snug::backends::cpu
