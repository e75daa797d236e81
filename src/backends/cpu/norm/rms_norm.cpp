#include "program/kinds/norm/rms_norm.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/norm/norm_grad.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

bool supports(const program::RmsNorm&, const program::OperationView& view, const CpuContext&) {
  return view[program::RmsNorm::kX].dtype == view[program::RmsNorm::kY].dtype;
}

void run(const program::RmsNorm& norm, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[program::RmsNorm::kX]);
  const Rows w = flattened(rows_of(invocation[program::RmsNorm::kW]));
  const Rows y = rows_of(invocation[program::RmsNorm::kY]);
  const auto forward = context.kernels.rms_norm->forward[x.element][w.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      forward(x.at(row), w.at(0), y.at(row), x.columns, norm.epsilon, norm.offset);
  });
}

bool supports(const program::RmsNormGrad& grad, const program::OperationView& view,
              const CpuContext&) {
  return supports_norm_grad(grad, view);
}

int64_t workspace_bytes(const program::RmsNormGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  return norm_grad_workspace_bytes(grad, view);
}

void run(const program::RmsNormGrad& grad, const Invocation& invocation, CpuContext& context) {
  run_norm_grad(grad, invocation, context, [&](Element x, Element w) {
    const auto backward = context.kernels.rms_norm->backward[x][w];
    return [&grad, backward](const NormGradRow& row) {
      backward({.dy = row.dy,
                .x = row.x,
                .w = row.w,
                .addend = row.addend,
                .dx = row.dx,
                .dw = row.dw,
                .d = row.d,
                .epsilon = grad.epsilon,
                .offset = grad.offset});
    };
  });
}

}  // namespace

SNUG_CPU_KIND(RmsNorm, .supports = supports);
SNUG_CPU_KIND(RmsNormGrad, .supports = supports, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
