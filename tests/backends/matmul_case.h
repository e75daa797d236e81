// One product of the CPU backend with its operands, transposes and sums, checked against a naive
// loop in fp64.
#pragma once

#include <string>

#include "one_operation.h"

namespace snug::backends::cpu {

struct MatmulCase {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  DType factors, result;
  float alpha = 1.0F;
  enum Sum { nothing, addend, addend_in_place, accumulate } sum = nothing;
  int64_t gap_a = 0, gap_b = 0, gap_c = 0;
  int64_t rank = 0;  // of a product that augments it; 0: none
  bool transpose_low = false;
  float low_alpha = 1.0F;
};

std::string describe(const MatmulCase& c);

// Runs it on backend(), on random values; what differs is a failure of the current test.
void check(const MatmulCase& c);

}  // namespace snug::backends::cpu
