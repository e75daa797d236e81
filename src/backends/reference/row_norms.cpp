#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/norm/row_norms.h"

namespace snug::backends::reference {
namespace {

using program::RowNorms;

// Element (row, column) of b a.
template <typename T>
T low_rank_element(const Invocation& invocation, int64_t row, int64_t column) {
  const Floats<T> a(invocation[RowNorms::kA]);
  const Floats<T> b(invocation[RowNorms::kB]);
  T sum = 0;
  for (int64_t k = 0; k < a.rows(); ++k) sum += b.at(row, k) * a.at(k, column);
  return sum;
}

template <typename T>
void run(const RowNorms& row_norms, const Invocation& invocation) {
  const Floats<T> w(invocation[RowNorms::kW]);
  const Floats<T> norms(invocation[RowNorms::kNorms]);
  const int64_t columns = row_norms.transposed ? w.rows() : w.columns();
  for (int64_t row = 0; row < norms.count(); ++row) {
    T squares = 0;
    for (int64_t column = 0; column < columns; ++column) {
      T value = row_norms.transposed ? w.at(column, row) : w.at(row, column);
      if (row_norms.low_rank)
        value += static_cast<T>(row_norms.alpha) * low_rank_element<T>(invocation, row, column);
      squares += value * value;
    }
    norms.set(row, std::sqrt(squares));
  }
}

}  // namespace

SNUG_REFERENCE_KIND(RowNorms);

}  // namespace snug::backends::reference
