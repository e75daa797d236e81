#include "program/kinds/norm/layer_norm.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/norm/norm_grad.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

bool supports(const program::LayerNorm& norm, const program::OperationView& view,
              const CpuContext&) {
  using Norm = program::LayerNorm;
  return view[Norm::kX].dtype == view[Norm::kY].dtype &&
         (!norm.bias || view[Norm::kBias].dtype == view[Norm::kW].dtype);
}

void run(const program::LayerNorm& norm, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[program::LayerNorm::kX]);
  const Rows w = flattened(rows_of(invocation[program::LayerNorm::kW]));
  const Rows bias = norm.bias ? flattened(rows_of(invocation[program::LayerNorm::kBias])) : Rows{};
  const Rows y = rows_of(invocation[program::LayerNorm::kY]);
  const auto forward = context.kernels.layer_norm->forward[x.element][w.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      forward({.x = x.at(row),
               .w = w.at(0),
               .bias = norm.bias ? bias.at(0) : nullptr,
               .y = y.at(row),
               .d = x.columns,
               .epsilon = norm.epsilon});
  });
}

bool supports(const program::LayerNormGrad& grad, const program::OperationView& view,
              const CpuContext&) {
  return supports_norm_grad(grad, view);
}

int64_t workspace_bytes(const program::LayerNormGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  return norm_grad_workspace_bytes(grad, view);
}

void run(const program::LayerNormGrad& grad, const Invocation& invocation, CpuContext& context) {
  run_norm_grad(grad, invocation, context, [&](Element x, Element w) {
    const auto backward = context.kernels.layer_norm->backward[x][w];
    return [&grad, backward](const NormGradRow& row) {
      backward({.dy = row.dy,
                .x = row.x,
                .w = row.w,
                .addend = row.addend,
                .dx = row.dx,
                .dw = row.dw,
                .d = row.d,
                .epsilon = grad.epsilon});
    };
  });
}

}  // namespace

SNUG_CPU_KIND(LayerNorm, .supports = supports);
SNUG_CPU_KIND(LayerNormGrad, .supports = supports, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
