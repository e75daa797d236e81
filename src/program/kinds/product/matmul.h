// matmul: c = alpha * op(a) op(b) [+ addend], fp32 accumulation. linear y = x W^T is transpose_b
// with the weight (out, in) as Hugging Face stores it. An augmented one adds an adapter's product
// of low rank; a backend may round it, with the addend, to c's type before it adds the other.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/product/product_choice.h"
#include "program/kinds/traits.h"

namespace snug::program {

// Library calls or passes over c that an augmented product takes: 1, or 2 where the second adds to
// what the first left in c; then what computes that of low rank.
struct ProductCount {
  int32_t count = 1;
  ProductAlgorithm low = ProductAlgorithm::loops;
  bool operator==(const ProductCount&) const = default;
  static constexpr std::tuple kParts{Part{"products", Priced::by_word, &ProductCount::count},
                                     Part{"low_algorithm", Priced::by_word, &ProductCount::low}};
};

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
  // What the target decides.
  ProductCount products = {};
  EdgedChoice choice = {};  // blocks of rows: those that a stochastic product makes in f32
  DenseOperands dense = {};
  bool operator==(const Matmul&) const = default;
  static constexpr auto kFields = std::tuple{Field{"transpose_a", &Matmul::transpose_a},
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
                                             Decision{"algorithm", &Matmul::choice},
                                             Decision{"dense", &Matmul::dense}};
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

constexpr bool copies_operands(const Matmul& matmul) { return matmul.dense != DenseOperands{}; }

// How often sums over `inner` are read and written again.
constexpr int64_t later_steps(int64_t inner, int64_t sum_step) {
  return sum_step > 0 && inner > 0 ? (inner - 1) / sum_step : 0;
}

}  // namespace snug::program
