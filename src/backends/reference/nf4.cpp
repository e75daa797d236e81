#include "program/kinds/product/nf4.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "backends/reference/nf4_weight.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::DequantizeNf4& dequantize, const Invocation& invocation) {
  const Nf4Weight<T> weight(dequantize, invocation);
  const Floats<T> w(invocation[program::DequantizeNf4::kW]);
  for (int64_t i = 0; i < w.count(); ++i) w.set(i, weight[i]);
}

template <typename T>
void run(const program::MatmulNf4& matmul, const Invocation& invocation) {
  const Floats<T> x(invocation[program::MatmulNf4::kX]);
  const Nf4Weight<T> weight(matmul, invocation);
  const Floats<T> y(invocation[program::MatmulNf4::kY]);
  const int64_t k = x.columns();
  for (int64_t row = 0; row < y.rows(); ++row)
    for (int64_t column = 0; column < y.columns(); ++column) {
      T sum{};
      for (int64_t i = 0; i < k; ++i) sum += x.at(row, i) * weight[column * k + i];
      if (matmul.addend) sum += Floats<T>(invocation[program::MatmulNf4::kAddend]).at(row, column);
      y.set(row, column, sum);
    }
}

}  // namespace

SNUG_REFERENCE_KIND(DequantizeNf4);
SNUG_REFERENCE_KIND(MatmulNf4);

}  // namespace snug::backends::reference
