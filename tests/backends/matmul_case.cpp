#include "matmul_case.h"

#include <algorithm>

#include "base/error.h"
#include "program/kinds/product/matmul.h"

namespace snug::backends::cpu {
namespace {

// The matrix or its transpose, row by row.
Values dense(const Matrix& matrix, bool transposed) {
  Values values;
  values.reserve(static_cast<size_t>(matrix.rows * matrix.columns));
  const int64_t rows = transposed ? matrix.columns : matrix.rows;
  const int64_t columns = transposed ? matrix.rows : matrix.columns;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      values.push_back(transposed ? matrix.at(j, i) : matrix.at(i, j));
  return values;
}

// Adds the terms of every sum in turn; a row of sums at once, which is a loop without an order.
Values product_of(const MatmulCase& c, const Matrix& a, const Matrix& b, const Matrix* addend) {
  const Values left = dense(a, c.transpose_a);
  const Values right = dense(b, c.transpose_b);
  Values expected(static_cast<size_t>(c.m * c.n));
  for (int64_t i = 0; i < c.m; ++i) {
    double* const sums = expected.data() + i * c.n;
    for (int64_t p = 0; p < c.k; ++p) {
      const double factor = left[static_cast<size_t>(i * c.k + p)];
      const double* const terms = right.data() + p * c.n;
      for (int64_t j = 0; j < c.n; ++j) sums[j] += factor * terms[j];
    }
    for (int64_t j = 0; j < c.n; ++j)
      sums[j] =
          static_cast<double>(c.alpha) * sums[j] + (addend == nullptr ? 0.0 : addend->at(i, j));
  }
  return expected;
}

void add_low_rank(const MatmulCase& c, const Matrix& a, const Matrix& b, Values& expected) {
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < c.rank; ++p)
        sum += a.at(i, p) * (c.transpose_low ? b.at(j, p) : b.at(p, j));
      expected[static_cast<size_t>(i * c.n + j)] += static_cast<double>(c.low_alpha) * sum;
    }
}

}  // namespace

std::string describe(const MatmulCase& c) {
  return fmt::format(
      "({} x {}) ({} x {}) transposed {} {}, {} -> {}, alpha {}, sum {}, gaps {} {} {}, rank {} {} "
      "{}",
      c.m, c.k, c.k, c.n, c.transpose_a, c.transpose_b, base::name_of(c.factors),
      base::name_of(c.result), c.alpha, static_cast<int>(c.sum), c.gap_a, c.gap_b, c.gap_c, c.rank,
      c.transpose_low, c.low_alpha);
}

void check(const MatmulCase& c) {
  SCOPED_TRACE(describe(c));
  Matrix a = c.transpose_a ? random_matrix(c.k, c.m, c.factors, c.gap_a)
                           : random_matrix(c.m, c.k, c.factors, c.gap_a);
  Matrix b = c.transpose_b ? random_matrix(c.n, c.k, c.factors, c.gap_b)
                           : random_matrix(c.k, c.n, c.factors, c.gap_b);
  Matrix addend = random_matrix(c.m, c.n, c.result, c.gap_c);
  Matrix result = c.sum == MatmulCase::addend_in_place || c.sum == MatmulCase::accumulate
                      ? addend
                      : empty_matrix(c.m, c.n, c.result, c.gap_c);
  Matrix low_a = random_matrix(c.m, std::max<int64_t>(1, c.rank), c.factors, c.gap_a);
  Matrix low_b = c.transpose_low
                     ? random_matrix(c.n, std::max<int64_t>(1, c.rank), c.factors, c.gap_b)
                     : random_matrix(std::max<int64_t>(1, c.rank), c.n, c.factors, c.gap_b);
  Values expected = product_of(c, a, b, c.sum == MatmulCase::nothing ? nullptr : &addend);
  OneOperation operation;
  program::Matmul matmul{
      .transpose_a = c.transpose_a, .transpose_b = c.transpose_b, .alpha = c.alpha};
  matmul.accumulate = c.sum == MatmulCase::accumulate;
  matmul.addend = c.sum == MatmulCase::addend || c.sum == MatmulCase::addend_in_place;
  std::vector<TensorId> reads{operation.tensor(a), operation.tensor(b)};
  std::vector<Buffer> read_buffers{a.buffer(), b.buffer()};
  TensorId added = program::kNone;
  if (matmul.addend) {
    reads.push_back(added = operation.tensor(addend));
    read_buffers.push_back(c.sum == MatmulCase::addend ? addend.buffer() : result.buffer());
  }
  if (c.rank > 0) {
    matmul.augmented = true;
    matmul.low_transpose_b = c.transpose_low;
    matmul.low_alpha = c.low_alpha;
    add_low_rank(c, low_a, low_b, expected);
    for (Matrix* low : {&low_a, &low_b}) {
      reads.push_back(operation.tensor(*low));
      read_buffers.push_back(low->buffer());
    }
  }
  const TensorId to =
      c.sum == MatmulCase::addend_in_place ? operation.same_place(added) : operation.tensor(result);
  if (matmul.accumulate) {
    operation.emit(matmul, reads, {}, {to});
    operation.run(read_buffers, {}, {result.buffer()});
  } else {
    operation.emit(matmul, reads, {to}, {});
    operation.run(read_buffers, {result.buffer()}, {});
  }
  EXPECT_LE(error_against(expected, result), kTolerance[c.result == DType::bf16 ? 1 : 0]);
  EXPECT_TRUE(gaps_untouched(result));
}

}  // namespace snug::backends::cpu
