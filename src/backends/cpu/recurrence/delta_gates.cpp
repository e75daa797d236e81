// One number a head and token: few, so that each is computed by itself, in any mix of types.
#include "program/kinds/recurrence/delta_gates.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

using program::DeltaGates;
using program::DeltaGatesGrad;

float element_at(const Rows& rows, int64_t row, int64_t column) {
  return value_at(rows.at(row), rows.element, column);
}
void set_element(const Rows& rows, int64_t row, int64_t column, float value) {
  set_value(rows.at(row), rows.element, column, value);
}

// log(1 + exp(x)).
float softplus(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); }
float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }

void run(const DeltaGates&, const Invocation& invocation, CpuContext&) {
  const Rows a = rows_of(invocation[DeltaGates::kA]);
  const Rows b = rows_of(invocation[DeltaGates::kB]);
  const Rows a_log = flattened(rows_of(invocation[DeltaGates::kALog]));
  const Rows dt_bias = flattened(rows_of(invocation[DeltaGates::kDtBias]));
  const Rows g = rows_of(invocation[DeltaGates::kG]);
  const Rows beta = rows_of(invocation[DeltaGates::kBeta]);
  parallel_ranges(a.rows, reduction_block_rows(a.rows), [&](int64_t begin, int64_t end) {
    for (int64_t h = 0; h < a.columns; ++h) {
      const float rate = -std::exp(element_at(a_log, 0, h));
      const float bias = element_at(dt_bias, 0, h);
      for (int64_t t = begin; t < end; ++t) {
        set_element(g, t, h, rate * softplus(element_at(a, t, h) + bias));
        set_element(beta, t, h, logistic(element_at(b, t, h)));
      }
    }
  });
}

// Sums of blocks of rows, of a_log and then of dt_bias.
int64_t workspace_bytes(const DeltaGatesGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  const program::Shape& shape = view[DeltaGatesGrad::kA].shape;
  return grad.weight_gradient ? 2 * reduction_bytes(shape[0], shape[1]) : 0;
}

void run(const DeltaGatesGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dg = rows_of(invocation[DeltaGatesGrad::kDG]);
  const Rows dbeta = rows_of(invocation[DeltaGatesGrad::kDBeta]);
  const Rows a = rows_of(invocation[DeltaGatesGrad::kA]);
  const Rows b = rows_of(invocation[DeltaGatesGrad::kB]);
  const Rows a_log = flattened(rows_of(invocation[DeltaGatesGrad::kALog]));
  const Rows dt_bias = flattened(rows_of(invocation[DeltaGatesGrad::kDtBias]));
  const Rows da = rows_of(invocation[DeltaGatesGrad::kDA]);
  const Rows db = rows_of(invocation[DeltaGatesGrad::kDB]);
  const int64_t stride = reduction_stride(a.columns);
  const int64_t blocks = reduction_blocks(a.rows);
  auto* of_a_log = invocation.workspace.as<float>();
  float* of_dt_bias = of_a_log + blocks * stride;
  const int64_t block_rows = reduction_block_rows(a.rows);
  parallel_ranges(a.rows, block_rows, [&](int64_t begin, int64_t end) {
    for (int64_t h = 0; h < a.columns; ++h) {
      const float rate = -std::exp(element_at(a_log, 0, h));
      const float bias = element_at(dt_bias, 0, h);
      float sums[2] = {0.0F, 0.0F};
      for (int64_t t = begin; t < end; ++t) {
        const float sum = element_at(a, t, h) + bias;
        const float of_rate = element_at(dg, t, h) * rate;
        const float slope = of_rate * logistic(sum);
        const float beta = logistic(element_at(b, t, h));
        sums[0] += of_rate * softplus(sum);
        sums[1] += slope;
        set_element(da, t, h, slope);
        set_element(db, t, h, element_at(dbeta, t, h) * beta * (1.0F - beta));
      }
      if (!grad.weight_gradient) continue;
      of_a_log[begin / block_rows * stride + h] = sums[0];
      of_dt_bias[begin / block_rows * stride + h] = sums[1];
    }
  });
  if (!grad.weight_gradient) return;
  add_reduction_blocks(context.kernels, of_a_log, blocks,
                       one_row_of(invocation[DeltaGatesGrad::kDALog]), false);
  add_reduction_blocks(context.kernels, of_dt_bias, blocks,
                       one_row_of(invocation[DeltaGatesGrad::kDDtBias]), false);
}

}  // namespace

SNUG_CPU_KIND(DeltaGates);
SNUG_CPU_KIND(DeltaGatesGrad, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
