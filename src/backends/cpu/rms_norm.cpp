#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
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
  const base::DType dtype = view[program::RmsNormGrad::kDY].dtype;
  return view[program::RmsNormGrad::kX].dtype == dtype &&
         view[program::RmsNormGrad::kDX].dtype == dtype &&
         (!grad.addend || view[program::RmsNormGrad::kAddend].dtype == dtype);
}

int64_t workspace_bytes(const program::RmsNormGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  if (!grad.weight_gradient) return 0;
  const program::Shape& dy = view[program::RmsNormGrad::kDY].shape;
  return reduction_bytes(dy.rows(), dy.columns());
}

void run(const program::RmsNormGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[program::RmsNormGrad::kDY]);
  const Rows x = rows_of(invocation[program::RmsNormGrad::kX]);
  const Rows w = flattened(rows_of(invocation[program::RmsNormGrad::kW]));
  const Rows addend = grad.addend ? rows_of(invocation[program::RmsNormGrad::kAddend]) : Rows{};
  const Rows dx = rows_of(invocation[program::RmsNormGrad::kDX]);
  float* partials = grad.weight_gradient ? invocation.workspace.as<float>() : nullptr;
  const auto backward = context.kernels.rms_norm->backward[x.element][w.element];
  const int64_t block_rows = reduction_block_rows(x.rows);
  parallel_ranges(x.rows, block_rows, [&](int64_t begin, int64_t end) {
    float* dw = nullptr;
    if (partials != nullptr) {
      dw = partials + begin / block_rows * reduction_stride(x.columns);
      std::fill(dw, dw + x.columns, 0.0F);
    }
    for (int64_t row = begin; row < end; ++row)
      backward({.dy = dy.at(row),
                .x = x.at(row),
                .w = w.at(0),
                .addend = grad.addend ? addend.at(row) : nullptr,
                .dx = dx.at(row),
                .dw = dw,
                .d = x.columns,
                .epsilon = grad.epsilon,
                .offset = grad.offset});
  });
  if (partials == nullptr) return;
  const Rows dw = rows_of(invocation[program::RmsNormGrad::kDW]);
  add_reduction_blocks(context.kernels, partials, reduction_blocks(x.rows), dw, grad.accumulate);
}

}  // namespace

SNUG_CPU_KIND(RmsNorm, .supports = supports);
SNUG_CPU_KIND(RmsNormGrad, .supports = supports, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
