#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "backends/reference/line.h"

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
  for (const char* decision : {"dense_a", "dense_c"}) invocation.note_decision(decision, 0);
  const Floats<T> a(invocation[GroupedMatmul::kA]);
  const Floats<T> b(invocation[GroupedMatmul::kB]);
  const Integers bounds(invocation[GroupedMatmul::kBounds]);
  const Floats<T> c(invocation[GroupedMatmul::kC]);
  const int64_t k = a.columns();
  const int64_t n = c.columns();
  for (int64_t expert = 0; 2 * expert < bounds.count(); ++expert)
    for (int64_t row = bounds[2 * expert]; row < bounds[2 * expert + 1]; ++row)
      for (int64_t j = 0; j < n; ++j) {
        const Line weights = grouped.transpose_b ? line_across(b.buffer(), expert * n + j, 0)
                                                 : line_down(b.buffer(), expert * k, j);
        c.set(row, j, add_products(T{0}, line_across(a.buffer(), row, 0), weights, k));
      }
}

template <typename T>
void run(const GroupedMatmulGrad& grad, const Invocation& invocation) {
  note_loops(invocation);
  for (const char* decision : {"sum_rows", "dense_a", "dense_b"})
    invocation.note_decision(decision, 0);
  const Floats<T> a(invocation[GroupedMatmulGrad::kA]);
  const Floats<T> b(invocation[GroupedMatmulGrad::kB]);
  const Integers bounds(invocation[GroupedMatmulGrad::kBounds]);
  const Floats<T> c(invocation[GroupedMatmulGrad::kC]);
  const int64_t m = a.columns();
  for (int64_t expert = 0; 2 * expert < bounds.count(); ++expert)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < b.columns(); ++j) {
        const T before = grad.accumulate ? c.at(expert * m + i, j) : T{0};
        const int64_t first = bounds[2 * expert];
        const int64_t rows = bounds[2 * expert + 1] - first;
        c.set(expert * m + i, j,
              add_products(before, line_down(a.buffer(), first, i), line_down(b.buffer(), first, j),
                           rows));
      }
}

}  // namespace

SNUG_REFERENCE_KIND(GroupedMatmul);
SNUG_REFERENCE_KIND(GroupedMatmulGrad);

}  // namespace snug::backends::reference
