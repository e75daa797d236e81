#include <algorithm>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::Embedding&, const Invocation& invocation) {
  const Floats<T> table(invocation[program::Embedding::kTable]);
  const Integers ids(invocation[program::Embedding::kIds]);
  const Floats<T> y(invocation[program::Embedding::kY]);
  for (int64_t t = 0; t < y.rows(); ++t) {
    const int64_t id = ids[t];
    SNUG_CHECK(id >= 0 && id < table.rows(), "id {} at {} in a table of {}", id, t, table.rows());
    for (int64_t j = 0; j < y.columns(); ++j) y.set(t, j, table.at(id, j));
  }
}

template <typename T>
void run(const program::EmbeddingGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::EmbeddingGrad::kDY]);
  const Integers ids(invocation[program::EmbeddingGrad::kIds]);
  const Floats<T> dtable(invocation[program::EmbeddingGrad::kDTable]);
  const std::span<T> sum = scratch<T>(invocation).first(static_cast<size_t>(dy.columns()));
  for (int64_t id = 0; id < dtable.rows(); ++id) {
    std::fill(sum.begin(), sum.end(), T{0});
    for (int64_t t = 0; t < dy.rows(); ++t)
      if (ids[t] == id)
        for (int64_t j = 0; j < dy.columns(); ++j) sum[static_cast<size_t>(j)] += dy.at(t, j);
    for (int64_t j = 0; j < dy.columns(); ++j) {
      const T value = sum[static_cast<size_t>(j)];
      dtable.set(id, j, grad.accumulate ? dtable.at(id, j) + value : value);
    }
  }
}

int64_t scratch_elements(const program::EmbeddingGrad&, const program::OperationView& view) {
  return view[program::EmbeddingGrad::kDY].shape.columns();
}

}  // namespace

SNUG_REFERENCE_KIND(Embedding);
SNUG_REFERENCE_KIND(EmbeddingGrad, .scratch_elements = scratch_elements);

}  // namespace snug::backends::reference
