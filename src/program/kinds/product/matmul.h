// matmul: c = alpha * op(a) op(b) [+ addend], fp32 accumulation. linear y = x W^T is transpose_b
// with the weight (out, in) as Hugging Face stores it. An augmented one adds an adapter's product
// of low rank; a backend may round it, with the addend, to c's type before it adds the other.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/product/product_algorithm.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: a (m, k), or (k, m) with transpose_a; b (k, n), or (n, k) with transpose_b; then the
// addend (m, n) if `addend`; then `random` (2) if `stochastic`; then, if `augmented`, low_a (m, r)
// and low_b (r, n), or (n, r) with low_transpose_b. writes: c (m, n). With `accumulate`, c is
// updated in place instead: c += alpha * op(a) op(b) [+ low_alpha * low_a op(low_b)].
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
  // Made by lowering, where the target runs it.
  bool augmented = false;
  bool low_transpose_b = false;
  float low_alpha = 1.0F;
  // Library calls or passes over c that an augmented product takes, decided by the target: 1, or 2
  // where the second adds to what the first left in c.
  int32_t products = 1;
  // What computes the product, decided by the target; with `products` 2 that of low rank has an
  // algorithm of its own.
  ProductAlgorithm algorithm = ProductAlgorithm::loops;
  ProductAlgorithm low_algorithm = ProductAlgorithm::loops;
  // Rows of c that a stochastic product makes in f32 at once, decided by the target, and what
  // computes the last rows where those are fewer. 0: all rows.
  int64_t block_rows = 0;
  ProductAlgorithm rest_algorithm = ProductAlgorithm::loops;
  // How much of the inner dimension is summed before the sums in c are read and written again,
  // decided by the target, and the same of the last rows. 0: all of it.
  int64_t sum_step = 0;
  int64_t rest_sum_step = 0;
  // Which operands the library's product copies to be without gaps between their rows before it
  // reads them, decided by the target; and whether it makes c without gaps, of what was there where
  // it adds to that, and copies it to where it belongs.
  bool dense_a = false;
  bool dense_b = false;
  bool dense_addend = false;
  bool dense_c = false;
  bool operator==(const Matmul&) const = default;
  // Priced alike: rows that are rounded at once are as many as fit a cache, whatever the shape;
  // steps follow from the inner size, which the key's shape has; of copies the name says that there
  // are some, and the cost has the bytes of each.
  static constexpr auto kFields =
      std::tuple{Field{"transpose_a", &Matmul::transpose_a},
                 Field{"transpose_b", &Matmul::transpose_b},
                 Field{"alpha", &Matmul::alpha},
                 Field{"addend", &Matmul::addend},
                 Field{"accumulate", &Matmul::accumulate},
                 Field{"stochastic", &Matmul::stochastic},
                 Field{"seed", &Matmul::seed},
                 Field{"site", &Matmul::site},
                 Field{"augmented", &Matmul::augmented},
                 Field{"low_transpose_b", &Matmul::low_transpose_b},
                 Field{"low_alpha", &Matmul::low_alpha},
                 Decision{"products", &Matmul::products},
                 Decision{"algorithm", &Matmul::algorithm, Priced::by_kind},
                 Decision{"low_algorithm", &Matmul::low_algorithm},
                 Decision{"block_rows", &Matmul::block_rows, Priced::alike},
                 Decision{"rest_algorithm", &Matmul::rest_algorithm},
                 Decision{"sum_step", &Matmul::sum_step, Priced::alike},
                 Decision{"rest_sum_step", &Matmul::rest_sum_step, Priced::alike},
                 Decision{"dense_a", &Matmul::dense_a, Priced::alike},
                 Decision{"dense_b", &Matmul::dense_b, Priced::alike},
                 Decision{"dense_addend", &Matmul::dense_addend, Priced::alike},
                 Decision{"dense_c", &Matmul::dense_c, Priced::alike}};
  static constexpr auto kA = read<Matmul>(0, "a");
  static constexpr auto kB = read<Matmul>(1, "b");
  static constexpr auto kAddend = read<Matmul>(2, kAddendOperand.text, &Matmul::addend);
  static constexpr auto kRandom = read<Matmul>(3, "random", &Matmul::stochastic);
  static constexpr auto kLowA = read<Matmul>(4, "low_a", &Matmul::augmented);
  static constexpr auto kLowB = read<Matmul>(5, "low_b", &Matmul::augmented);
  static constexpr auto kC = write_or_update<Matmul>(6, "c", &Matmul::accumulate);
  static constexpr std::array kOperands{kA, kB, kAddend, kRandom, kLowA, kLowB, kC};
  static constexpr std::array kInPlace{InPlaceOperands<Matmul>{kC, kAddend}};
  static constexpr Traits kTraits{.category = Category::product, .is_joinable = true};
};

constexpr bool copies_operands(const Matmul& matmul) {
  return matmul.dense_a || matmul.dense_b || matmul.dense_addend || matmul.dense_c;
}

// How often sums over `inner` are read and written again.
constexpr int64_t later_steps(int64_t inner, int64_t sum_step) {
  return sum_step > 0 && inner > 0 ? (inner - 1) / sum_step : 0;
}

}  // namespace snug::program
