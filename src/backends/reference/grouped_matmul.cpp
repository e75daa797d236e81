#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

using program::GroupedMatmul;
using program::GroupedMatmulGrad;

void note_loops(const Invocation& invocation) {
  invocation.note_decision("block_rows", 0);
  for (const char* decision : {"algorithm", "rest_algorithm"})
    invocation.note_decision(decision, program::ProductAlgorithm::loops);
}

template <typename T>
void run(const GroupedMatmul& grouped, const Invocation& invocation) {
  note_loops(invocation);
  const Floats<T> a(invocation[GroupedMatmul::kA]);
  const Floats<T> b(invocation[GroupedMatmul::kB]);
  const Integers bounds(invocation[GroupedMatmul::kBounds]);
  const Floats<T> c(invocation[GroupedMatmul::kC]);
  const int64_t k = a.columns();
  const int64_t n = c.columns();
  for (int64_t expert = 0; 2 * expert < bounds.count(); ++expert)
    for (int64_t row = bounds[2 * expert]; row < bounds[2 * expert + 1]; ++row)
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += a.at(row, i) *
                 (grouped.transpose_b ? b.at(expert * n + j, i) : b.at(expert * k + i, j));
        c.set(row, j, sum);
      }
}

template <typename T>
void run(const GroupedMatmulGrad& grad, const Invocation& invocation) {
  note_loops(invocation);
  invocation.note_decision("sum_rows", 0);
  const Floats<T> a(invocation[GroupedMatmulGrad::kA]);
  const Floats<T> b(invocation[GroupedMatmulGrad::kB]);
  const Integers bounds(invocation[GroupedMatmulGrad::kBounds]);
  const Floats<T> c(invocation[GroupedMatmulGrad::kC]);
  const int64_t m = a.columns();
  for (int64_t expert = 0; 2 * expert < bounds.count(); ++expert)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < b.columns(); ++j) {
        T sum = grad.accumulate ? c.at(expert * m + i, j) : T{0};
        for (int64_t row = bounds[2 * expert]; row < bounds[2 * expert + 1]; ++row)
          sum += a.at(row, i) * b.at(row, j);
        c.set(expert * m + i, j, sum);
      }
}

}  // namespace

SNUG_REFERENCE_KIND(GroupedMatmul);
SNUG_REFERENCE_KIND(GroupedMatmulGrad);

}  // namespace snug::backends::reference
