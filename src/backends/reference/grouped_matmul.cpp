#include "program/kinds/product/grouped_matmul.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "backends/reference/line.h"
#include "backends/reference/nf4_weight.h"

namespace snug::backends::reference {
namespace {

using program::GroupedMatmul;
using program::GroupedMatmulGrad;

// All rows are multiplied in the same way, as one piece.
void note_rows(int64_t rows, const Invocation& invocation) {
  for (const int64_t each : {rows, int64_t{0}}) invocation.note_piece(each);
}

template <typename T>
void run_stored(const GroupedMatmul& grouped, const Invocation& invocation) {
  const Floats<T> a(invocation[GroupedMatmul::kA]);
  const Nf4Weight<T> b(grouped, invocation);
  const Integers bounds(invocation[GroupedMatmul::kBounds]);
  const Floats<T> c(invocation[GroupedMatmul::kC]);
  const int64_t k = a.columns();
  const int64_t n = c.columns();
  for (int64_t expert = 0; 2 * expert < bounds.count(); ++expert)
    for (int64_t row = bounds[2 * expert]; row < bounds[2 * expert + 1]; ++row)
      for (int64_t j = 0; j < n; ++j) {
        T sum{};
        for (int64_t i = 0; i < k; ++i)
          sum += a.at(row, i) * b[expert * k * n + (grouped.transpose_b ? j * k + i : i * n + j)];
        c.set(row, j, sum);
      }
  note_rows(a.rows(), invocation);
}

template <typename T>
void run(const GroupedMatmul& grouped, const Invocation& invocation) {
  if (grouped.stored) return run_stored<T>(grouped, invocation);
  const Floats<T> a(invocation[GroupedMatmul::kA]);
  const Floats<T> b(invocation[GroupedMatmul::kB]);
  const Integers bounds(invocation[GroupedMatmul::kBounds]);
  const Floats<T> c(invocation[GroupedMatmul::kC]);
  const int64_t k = a.columns();
  const int64_t n = c.columns();
  int64_t done = 0;
  for (int64_t expert = 0; 2 * expert < bounds.count(); ++expert)
    for (int64_t row = bounds[2 * expert]; row < bounds[2 * expert + 1]; ++row, ++done)
      for (int64_t j = 0; j < n; ++j) {
        const Line weights = grouped.transpose_b ? line_across(b.buffer(), expert * n + j, 0)
                                                 : line_down(b.buffer(), expert * k, j);
        c.set(row, j, add_products(T{0}, line_across(a.buffer(), row, 0), weights, k));
      }
  note_rows(done, invocation);
}

template <typename T>
void run(const GroupedMatmulGrad& grad, const Invocation& invocation) {
  const Floats<T> a(invocation[GroupedMatmulGrad::kA]);
  const Floats<T> b(invocation[GroupedMatmulGrad::kB]);
  const Integers bounds(invocation[GroupedMatmulGrad::kBounds]);
  const Floats<T> c(invocation[GroupedMatmulGrad::kC]);
  const int64_t m = a.columns();
  int64_t done = 0;
  for (int64_t expert = 0; 2 * expert < bounds.count(); ++expert) {
    const int64_t first = bounds[2 * expert];
    const int64_t rows = bounds[2 * expert + 1] - first;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < b.columns(); ++j) {
        const T before = grad.accumulate ? c.at(expert * m + i, j) : T{0};
        c.set(expert * m + i, j,
              add_products(before, line_down(a.buffer(), first, i), line_down(b.buffer(), first, j),
                           rows));
      }
    done += rows;
  }
  note_rows(done, invocation);
}

}  // namespace

SNUG_REFERENCE_KIND(GroupedMatmul);
SNUG_REFERENCE_KIND(GroupedMatmulGrad);

}  // namespace snug::backends::reference
