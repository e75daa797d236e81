// matmul: c = alpha * op(a) op(b) [+ addend], fp32 accumulation. linear y = x W^T is transpose_b
// with the weight (out, in) as Hugging Face stores it.
#pragma once

#include <cstdint>

#include "program/kinds/field.h"

namespace snug::program {

// reads: a (m, k), or (k, m) with transpose_a; b (k, n), or (n, k) with transpose_b; then the
// addend (m, n) if `addend`; then `random` (2) if `stochastic`. writes: c (m, n). With
// `accumulate`, c is updated in place instead: c += alpha * op(a) op(b).
struct Matmul {
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1.0F;
  bool addend = false;
  bool accumulate = false;
  // Rounds c += ... stochastically to bf16, keyed by (seed, random, site, element): only with
  // accumulate.
  bool stochastic = false;
  int64_t seed = 0;
  int32_t site = 0;
  bool operator==(const Matmul&) const = default;
  static constexpr auto kFields = std::tuple{Field{"transpose_a", &Matmul::transpose_a},
                                             Field{"transpose_b", &Matmul::transpose_b},
                                             Field{"alpha", &Matmul::alpha},
                                             Field{"addend", &Matmul::addend},
                                             Field{"accumulate", &Matmul::accumulate},
                                             Field{"stochastic", &Matmul::stochastic},
                                             Field{"seed", &Matmul::seed},
                                             Field{"site", &Matmul::site}};
};

}  // namespace snug::program
