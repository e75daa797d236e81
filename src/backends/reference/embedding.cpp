#include <algorithm>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/product/embedding.h"

namespace snug::backends::reference {
namespace {

// A table indexed by id and column, whether or not it is stored transposed.
template <typename T>
class Table {
 public:
  Table(const Buffer& buffer, bool transposed) : values_(buffer), transposed_(transposed) {}
  int64_t ids() const { return transposed_ ? values_.columns() : values_.rows(); }
  T at(int64_t id, int64_t j) const { return transposed_ ? values_.at(j, id) : values_.at(id, j); }
  void set(int64_t id, int64_t j, T value) const {
    transposed_ ? values_.set(j, id, value) : values_.set(id, j, value);
  }

 private:
  Floats<T> values_;
  bool transposed_;
};

template <typename T>
void run(const program::Embedding& embedding, const Invocation& invocation) {
  const Table<T> table(invocation[program::Embedding::kTable], embedding.transposed);
  const Integers ids(invocation[program::Embedding::kIds]);
  const Floats<T> y(invocation[program::Embedding::kY]);
  for (int64_t t = 0; t < y.rows(); ++t) {
    const int64_t id = ids[t];
    SNUG_CHECK(id >= 0 && id < table.ids(), "id {} at {} in a table of {}", id, t, table.ids());
    for (int64_t j = 0; j < y.columns(); ++j) y.set(t, j, table.at(id, j));
  }
}

template <typename T>
void run(const program::EmbeddingGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::EmbeddingGrad::kDY]);
  const Integers ids(invocation[program::EmbeddingGrad::kIds]);
  const Table<T> dtable(invocation[program::EmbeddingGrad::kDTable], grad.transposed);
  const std::span<T> sum = scratch<T>(invocation).first(static_cast<size_t>(dy.columns()));
  for (int64_t id = 0; id < dtable.ids(); ++id) {
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
