#include "program/kinds/product/matmul.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "backends/reference/line.h"

namespace snug::backends::reference {
namespace {

using program::Matmul;

// Of op(a) times op(b): a row's elements in so many columns. Each is the sum of its products, one
// after another. Those of neighbouring columns grow side by side, which takes a quarter of the time
// that one column after another takes; the elements of b lie next to each other for that.
template <typename T>
class Columns {
 public:
  static constexpr int64_t kMost = 64;

  Columns(const Matmul& matmul, const Floats<T>& a, const Floats<T>& b, int64_t first,
          int64_t count)
      : matmul_(matmul),
        a_(a),
        inner_(matmul.transpose_a ? a.rows() : a.columns()),
        sums_(static_cast<size_t>(count)),
        elements_(static_cast<size_t>(inner_ * count)) {
    for (int64_t j = 0; j < count; ++j) {
      const Line line = matmul.transpose_b ? line_across(b.buffer(), first + j, 0)
                                           : line_down(b.buffer(), 0, first + j);
      with_stored(line, [&](const auto* stored) {
        for (int64_t k = 0; k < inner_; ++k)
          elements_[static_cast<size_t>(k * count + j)] =
              static_cast<T>(plain(stored[k * line.step]));
      });
    }
  }

  // Of row i.
  std::span<const T> row(int64_t i) {
    std::ranges::fill(sums_, T{0});
    const Line line =
        matmul_.transpose_a ? line_down(a_.buffer(), 0, i) : line_across(a_.buffer(), i, 0);
    with_stored(line, [&](const auto* stored) {
      const T* right = elements_.data();
      for (int64_t k = 0; k < inner_; ++k, right += sums_.size()) {
        const T left = static_cast<T>(plain(stored[k * line.step]));
        for (size_t j = 0; j < sums_.size(); ++j) sums_[j] += left * right[j];
      }
    });
    for (T& sum : sums_) sum = static_cast<T>(matmul_.alpha) * sum;
    return sums_;
  }

 private:
  Matmul matmul_;
  const Floats<T>& a_;
  int64_t inner_;
  std::vector<T> sums_;
  std::vector<T> elements_;  // (inner, columns)
};

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
  std::optional<Floats<T>> low_a;
  std::optional<Floats<T>> low_b;
  if (matmul.augmented) {
    low_a.emplace(invocation[Matmul::kLowA]);
    low_b.emplace(invocation[Matmul::kLowB]);
  }
  const Matmul low_rank{.transpose_b = matmul.low_transpose_b, .alpha = matmul.low_alpha};
  for (int64_t first = 0; first < c.columns(); first += Columns<T>::kMost) {
    const int64_t count = std::min(Columns<T>::kMost, c.columns() - first);
    Columns<T> columns(matmul, a, b, first, count);
    std::optional<Columns<T>> low;
    if (matmul.augmented) low.emplace(low_rank, *low_a, *low_b, first, count);
    for (int64_t i = 0; i < c.rows(); ++i) {
      const std::span<const T> products = columns.row(i);
      const std::span<const T> more = low ? low->row(i) : std::span<const T>{};
      for (int64_t j = 0; j < count; ++j) {
        T value = products[static_cast<size_t>(j)];
        if (low) value += more[static_cast<size_t>(j)];
        if (matmul.addend) value += Floats<T>(invocation[Matmul::kAddend]).at(i, first + j);
        if (matmul.accumulate) value += c.at(i, first + j);
        const int64_t index = i * c.columns() + first + j;
        if (matmul.stochastic)
          c.set_rounded(index, value, rounding_bits(key, 0, index));
        else
          c.set(i, first + j, value);
      }
    }
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Matmul);

}  // namespace snug::backends::reference
