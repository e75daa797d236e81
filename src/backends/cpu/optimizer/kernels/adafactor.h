// Adafactor's passes over a row of a matrix, or over a run of a vector, which is a row whose column
// moments are its own.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Column moments: state = state keep + square share, where `squares` are sums over a matrix's
// columns times `of_square`. Their inverse roots go to `inverse`.
struct AdafactorColumns {
  const float* squares;
  float of_square;
  float keep;
  float share;  // 1 - keep
  float* state;
  float* inverse;
  int64_t n;
};

// An element's update is gradient scale inverse, where `scale` is all that its row shares.
struct AdafactorRow {
  const void* gradient;
  const float* inverse;
  float scale;
  int64_t n;
};

struct AdafactorTarget {
  void* weight;
  float* master;  // may be the weight itself
  float keep;     // of the weight, before the update is taken away
};

struct AdafactorKernels {
  // [gradient]: the sum of (gradient factor)^2 + epsilon over the run; each is added to its column.
  float (*sum_squares[kElements])(const void* gradient, float factor, float epsilon, float* columns,
                                  int64_t n);
  void (*advance_columns)(const AdafactorColumns& columns);
  // [gradient]: the sum of the squares of the update.
  float (*size_of_update[kElements])(const AdafactorRow& row);
  // [gradient][weight].
  void (*step[kElements][kElements])(const AdafactorRow& row, const AdafactorTarget& target);
};

}  // namespace snug::backends::cpu
