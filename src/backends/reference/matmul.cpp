#include "program/kinds/product/matmul.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "backends/reference/line.h"

namespace snug::backends::reference {
namespace {

using program::Matmul;

// Row i of op(a) times column j of op(b).
template <typename T>
T product(const Matmul& matmul, const Floats<T>& a, const Floats<T>& b, int64_t i, int64_t j) {
  const int64_t inner = matmul.transpose_a ? a.rows() : a.columns();
  const Line left =
      matmul.transpose_a ? line_down(a.buffer(), 0, i) : line_across(a.buffer(), i, 0);
  const Line right =
      matmul.transpose_b ? line_across(b.buffer(), j, 0) : line_down(b.buffer(), 0, j);
  const T sum = add_products(T{0}, left, right, inner);
  return static_cast<T>(matmul.alpha) * sum;
}

// Row i of low_a times column j of op(low_b).
template <typename T>
T low_rank_product(const Matmul& matmul, const Invocation& invocation, int64_t i, int64_t j) {
  const Floats<T> a(invocation[Matmul::kLowA]);
  const Floats<T> b(invocation[Matmul::kLowB]);
  const Matmul low{.transpose_b = matmul.low_transpose_b, .alpha = matmul.low_alpha};
  return product(low, a, b, i, j);
}

template <typename T>
void run(const Matmul& matmul, const Invocation& invocation) {
  const Floats<T> a(invocation[Matmul::kA]);
  const Floats<T> b(invocation[Matmul::kB]);
  const Floats<T> c(invocation[Matmul::kC]);
  base::PhiloxKey key{};
  if (matmul.stochastic) {
    const Integers random(invocation[Matmul::kRandom]);
    key = stream_key({matmul.seed, matmul.site, random[0], random[1]}, RandomPurpose::rounding);
  }
  for (int64_t i = 0; i < c.rows(); ++i)
    for (int64_t j = 0; j < c.columns(); ++j) {
      T value = product(matmul, a, b, i, j);
      if (matmul.augmented) value += low_rank_product<T>(matmul, invocation, i, j);
      if (matmul.addend) value += Floats<T>(invocation[Matmul::kAddend]).at(i, j);
      if (matmul.accumulate) value += c.at(i, j);
      const int64_t index = i * c.columns() + j;
      if (matmul.stochastic)
        c.set_rounded(index, value, rounding_bits(key, 0, index));
      else
        c.set(i, j, value);
    }
}

}  // namespace

SNUG_REFERENCE_KIND(Matmul);

}  // namespace snug::backends::reference
