#include <array>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/product/row_products.h"
#include "program/kinds/expert/expert_rows.h"

namespace snug::backends::cpu {
namespace {

using program::Combine;
using program::Permute;
using program::ScaleRows;
using program::ScaleRowsGrad;

void run(const Permute&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[Permute::kX]);
  const Rows y = rows_of(invocation[Permute::kY]);
  const int32_t* places = integers_of(invocation[Permute::kPlaces]);
  const int64_t k = invocation[Permute::kPlaces].shape.columns();
  const auto convert = context.kernels.elementwise->convert[x.element][y.element];
  parallel_ranges(x.rows, expert_rows_per_task(x.columns), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t i = t * k; i < (t + 1) * k; ++i) convert(x.at(t), y.at(places[i]), x.columns);
  });
}

// Sums in f32 and rounds once.
void combine_row(const ElementwiseKernels& kernels, const Rows& x, const int32_t* places, int64_t k,
                 std::byte* y, Element element) {
  alignas(64) std::array<float, kRowPiece> sum;
  const int64_t width = element == kF32 ? 4 : 2;
  for (int64_t begin = 0; begin < x.columns; begin += kRowPiece) {
    const int64_t n = std::min(kRowPiece, x.columns - begin);
    kernels.convert[x.element][kF32](x.at(places[0], begin), sum.data(), n);
    for (int64_t i = 1; i < k; ++i)
      kernels.add[x.element][kF32][kF32](x.at(places[i], begin), sum.data(), sum.data(), n);
    kernels.convert[kF32][element](sum.data(), y + begin * width, n);
  }
}

void run(const Combine&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[Combine::kX]);
  const Rows y = rows_of(invocation[Combine::kY]);
  const int32_t* places = integers_of(invocation[Combine::kPlaces]);
  const int64_t k = invocation[Combine::kPlaces].shape.columns();
  parallel_ranges(y.rows, expert_rows_per_task(y.columns * k), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      combine_row(*context.kernels.elementwise, x, places + t * k, k, y.at(t), y.element);
  });
}

void run(const ScaleRows&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[ScaleRows::kX]);
  const Rows y = rows_of(invocation[ScaleRows::kY]);
  const auto* weights = invocation[ScaleRows::kWeights].as<const float>();
  const int32_t* places = integers_of(invocation[ScaleRows::kPlaces]);
  const auto scale = context.kernels.elementwise->scale[x.element][y.element];
  parallel_ranges(x.rows, expert_rows_per_task(x.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      scale(x.at(places[i]), y.at(places[i]), x.columns, weights[i]);
  });
}

// dx may be dy: a row's dot product is computed before the row is scaled.
void run(const ScaleRowsGrad&, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[ScaleRowsGrad::kDY]);
  const Rows x = rows_of(invocation[ScaleRowsGrad::kX]);
  const Rows dx = rows_of(invocation[ScaleRowsGrad::kDX]);
  const auto* weights = invocation[ScaleRowsGrad::kWeights].as<const float>();
  auto* dweights = invocation[ScaleRowsGrad::kDWeights].as<float>();
  const int32_t* places = integers_of(invocation[ScaleRowsGrad::kPlaces]);
  const ElementwiseKernels& kernels = *context.kernels.elementwise;
  parallel_ranges(x.rows, expert_rows_per_task(x.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = places[i];
      dweights[i] = dot_rows(kernels, {dy.at(row), dy.element}, {x.at(row), x.element}, x.columns);
      kernels.scale[dy.element][dx.element](dy.at(row), dx.at(row), x.columns, weights[i]);
    }
  });
}

}  // namespace

SNUG_CPU_KIND(Permute);
SNUG_CPU_KIND(Combine);
SNUG_CPU_KIND(ScaleRows);
SNUG_CPU_KIND(ScaleRowsGrad);

}  // namespace snug::backends::cpu
