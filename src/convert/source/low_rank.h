// The product that an adapter adds to a matrix. Pure; distinct rows may be computed in parallel.
#pragma once

#include <cstdint>

namespace snug::convert {

struct LowRank {
  const float* left = nullptr;   // (rows, r)
  const float* right = nullptr;  // (r, columns)
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t r = 0;
  float scale = 1.0F;
};

// values (rows, columns) += scale * left * right. Every sum goes over r in fp32, in order.
void add_low_rank(const LowRank& product, float* values);

}  // namespace snug::convert
