#include <algorithm>
#include <span>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "program/kinds/product/column_scale.h"

namespace snug::backends::cpu {
namespace {

using program::ColumnGainGrad;
using program::ScaleColumns;

template <typename Struct>
const float* divisor_of(const Struct& attributes, const Invocation& invocation) {
  return attributes.divided ? invocation[Struct::kDivisor].template as<const float>() : nullptr;
}

// Repeats each gain's factor for all of its columns.
void spread(float* factors, int64_t gains, int64_t width) {
  for (int64_t i = gains - 1; i >= 0 && width > 1; --i)
    std::fill_n(factors + i * width, width, float{factors[i]});
}

// One factor per column.
int64_t workspace_bytes(const ScaleColumns&, const program::OperationView& view,
                        const CpuContext&) {
  return view[ScaleColumns::kX].shape.columns() * int64_t{sizeof(float)};
}

void run(const ScaleColumns& scale, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[ScaleColumns::kX]);
  const Rows gain = one_row_of(invocation[ScaleColumns::kGain]);
  const Rows y = rows_of(invocation[ScaleColumns::kY]);
  const ColumnScaleKernels& kernels = *context.kernels.column_scale;
  float* factors = invocation.workspace.as<float>();
  kernels.factors[gain.element](gain.at(0), divisor_of(scale, invocation), factors, gain.columns);
  spread(factors, gain.columns, program::columns_of_gain(x.columns, gain.columns));
  const auto multiply = kernels.multiply[x.element][y.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) multiply(x.at(row), factors, y.at(row), x.columns);
  });
}

// Partial sums over columns for each block of rows, and the sums per gain.
int64_t workspace_bytes(const ColumnGainGrad&, const program::OperationView& view,
                        const CpuContext&) {
  const program::Shape& x = view[ColumnGainGrad::kX].shape;
  const int64_t gains = view[ColumnGainGrad::kDGain].shape.elements();
  const int64_t of_gains = gains == x.columns() ? 0 : reduction_bytes(x.rows(), gains);
  return reduction_bytes(x.rows(), x.columns()) + of_gains;
}

void add_columns_of_gains(const float* columns, int64_t width, std::span<float> gains) {
  for (size_t i = 0; i < gains.size(); ++i) {
    float sum = 0.0F;
    for (int64_t j = 0; j < width; ++j) sum += columns[static_cast<int64_t>(i) * width + j];
    gains[i] = sum;
  }
}

// Partial sums over blocks of rows, which are then added in order.
void run(const ColumnGainGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[ColumnGainGrad::kDY]);
  const Rows x = rows_of(invocation[ColumnGainGrad::kX]);
  const Rows dgain = rows_of(invocation[ColumnGainGrad::kDGain]);
  const float* divisor = divisor_of(grad, invocation);
  const ColumnScaleKernels& kernels = *context.kernels.column_scale;
  const auto add_products = kernels.add_products[dy.element][x.element];
  const int64_t gains = invocation[ColumnGainGrad::kDGain].elements();
  const int64_t width = program::columns_of_gain(x.columns, gains);
  float* of_columns = invocation.workspace.as<float>();
  const int64_t blocks = reduction_blocks(x.rows);
  float* partials = width == 1 ? of_columns : of_columns + blocks * reduction_stride(x.columns);
  const int64_t block_rows = reduction_block_rows(x.rows);
  parallel_ranges(x.rows, block_rows, [&](int64_t begin, int64_t end) {
    float* columns = of_columns + begin / block_rows * reduction_stride(x.columns);
    float* sums = partials + begin / block_rows * reduction_stride(gains);
    std::fill(columns, columns + x.columns, 0.0F);
    for (int64_t row = begin; row < end; ++row)
      add_products(dy.at(row), x.at(row), columns, x.columns);
    if (width > 1) add_columns_of_gains(columns, width, {sums, static_cast<size_t>(gains)});
    if (divisor != nullptr) kernels.divide(divisor, sums, gains);
  });
  add_reduction_blocks(context.kernels, partials, blocks, dgain, grad.accumulate);
}

}  // namespace

SNUG_CPU_KIND(ScaleColumns, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(ColumnGainGrad, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
