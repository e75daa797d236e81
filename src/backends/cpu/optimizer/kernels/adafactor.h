// Adafactor's passes over a row of a matrix, or over a run of a vector, which is a row whose column
// moments are its moments.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Updates column moments: state = state * keep + square * share, where square is an element of
// `squares`, the sums over a matrix's columns, times `of_square`. Their inverse roots are written
// to `inverse`.
struct AdafactorColumns {
  const float* squares;
  float of_square;
  float keep;
  float share;  // 1 - keep
  float* state;
  float* inverse;
  int64_t n;
};

// An element's update is gradient * scale * inverse, where `scale` is common to the row.
struct AdafactorRow {
  const void* gradient;
  const float* inverse;
  float scale;
  int64_t n;
};

struct AdafactorTarget {
  void* weight;
  float* master;  // may be the weight itself
  float keep;     // factor for the weight, before the update is subtracted
};

struct AdafactorKernels {
  // Indexed by [type of gradient]. Returns the sum of (gradient * factor)^2 + epsilon over the run,
  // and adds each term to its column.
  float (*sum_squares[kElements])(const void* gradient, float factor, float epsilon, float* columns,
                                  int64_t n);
  void (*advance_columns)(const AdafactorColumns& columns);
  // Indexed by [type of gradient]. Returns the sum of the squares of the update.
  float (*size_of_update[kElements])(const AdafactorRow& row);
  // Indexed by [type of gradient][type of weight].
  void (*step[kElements][kElements])(const AdafactorRow& row, const AdafactorTarget& target);
};

}  // namespace snug::backends::cpu
