#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/optimizer/adafactor.h"

namespace snug::backends::reference {
namespace {

using program::Adafactor;

// The operands of a tensor's step.
template <typename T>
struct Operands {
  explicit Operands(const Adafactor& adafactor, const Invocation& invocation)
      : gradient(invocation[Adafactor::kGradient]),
        weight(invocation[Adafactor::kWeight]),
        stepped(invocation[adafactor.has_master ? Adafactor::kMaster : Adafactor::kWeight]),
        row_moment(invocation[Adafactor::kRows]),
        column_moment(invocation[adafactor.factored ? Adafactor::kColumns : Adafactor::kRows]),
        factor(Floats<T>(invocation[Adafactor::kFactor])[0]) {}
  const Floats<T> gradient, weight, stepped, row_moment, column_moment;
  const T factor;

  T clipped(int64_t i) const { return gradient[i] * factor; }
};

// The mean of g^2 + epsilon over a row (step 1) or a column (step `columns`). Sums are fp64, since
// they may be long.
template <typename T>
T mean_square(const Operands<T>& tensor, T epsilon, int64_t first, int64_t step, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    const T g = tensor.clipped(first + k * step);
    sum += static_cast<double>(g * g + epsilon);
  }
  return static_cast<T>(sum / static_cast<double>(count));
}

template <typename T>
void advance_moments(const Adafactor& adafactor, const Operands<T>& tensor, T beta) {
  const T epsilon = static_cast<T>(adafactor.epsilon);
  const auto advance = [&](const Floats<T>& moment, int64_t i, T square) {
    moment.set(i, beta * moment[i] + (T{1} - beta) * square);
  };
  if (!adafactor.factored) {
    for (int64_t i = 0; i < tensor.weight.count(); ++i)
      advance(tensor.row_moment, i, mean_square<T>(tensor, epsilon, i, 1, 1));
    return;
  }
  const int64_t rows = tensor.weight.rows();
  const int64_t columns = tensor.weight.columns();
  for (int64_t row = 0; row < rows; ++row)
    advance(tensor.row_moment, row, mean_square<T>(tensor, epsilon, row * columns, 1, columns));
  for (int64_t column = 0; column < columns; ++column)
    advance(tensor.column_moment, column, mean_square<T>(tensor, epsilon, column, columns, rows));
}

template <typename T>
void run(const Adafactor& adafactor, const Invocation& invocation) {
  const Operands<T> tensor(adafactor, invocation);
  const int32_t count = Integers(invocation[Adafactor::kStep])[0];
  const T rate = Floats<T>(invocation[Adafactor::kLearningRate])[0];
  if (std::isnan(tensor.factor)) return;
  const T share = std::pow(static_cast<T>(count), static_cast<T>(adafactor.decay_rate));
  advance_moments<T>(adafactor, tensor, T{1} - share);
  T mean_row = 0;
  for (int64_t i = 0; i < tensor.row_moment.count(); ++i) mean_row += tensor.row_moment[i];
  mean_row /= static_cast<T>(tensor.row_moment.count());
  const int64_t columns = tensor.weight.columns();
  const auto update_of = [&](int64_t i) {
    const T second = adafactor.factored ? tensor.row_moment[i / columns] / mean_row *
                                              tensor.column_moment[i % columns]
                                        : tensor.row_moment[i];
    return tensor.clipped(i) / std::sqrt(second);
  };
  double squares = 0;
  for (int64_t i = 0; i < tensor.weight.count(); ++i)
    squares += static_cast<double>(update_of(i) * update_of(i));
  const T size = static_cast<T>(std::sqrt(squares / static_cast<double>(tensor.weight.count())));
  const T clipping = std::max(T{1}, size / static_cast<T>(adafactor.clip_threshold));
  const T keep = T{1} - rate * static_cast<T>(adafactor.weight_decay);
  for (int64_t i = 0; i < tensor.weight.count(); ++i) {
    const T next = tensor.stepped[i] * keep - rate / clipping * update_of(i);
    tensor.weight.set(i, next);
    if (adafactor.has_master) tensor.stepped.set(i, next);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Adafactor);

}  // namespace snug::backends::reference
