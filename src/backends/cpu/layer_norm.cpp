#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
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
  const base::DType dtype = view[program::LayerNormGrad::kDY].dtype;
  return view[program::LayerNormGrad::kX].dtype == dtype &&
         view[program::LayerNormGrad::kDX].dtype == dtype &&
         (!grad.addend || view[program::LayerNormGrad::kAddend].dtype == dtype);
}

int64_t workspace_bytes(const program::LayerNormGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  if (!grad.weight_gradient) return 0;
  const program::Shape& dy = view[program::LayerNormGrad::kDY].shape;
  return reduction_bytes(dy.rows(), dy.columns());
}

void run(const program::LayerNormGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[program::LayerNormGrad::kDY]);
  const Rows x = rows_of(invocation[program::LayerNormGrad::kX]);
  const Rows w = flattened(rows_of(invocation[program::LayerNormGrad::kW]));
  const Rows addend = grad.addend ? rows_of(invocation[program::LayerNormGrad::kAddend]) : Rows{};
  const Rows dx = rows_of(invocation[program::LayerNormGrad::kDX]);
  float* partials = grad.weight_gradient ? invocation.workspace.as<float>() : nullptr;
  const auto backward = context.kernels.layer_norm->backward[x.element][w.element];
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
                .epsilon = grad.epsilon});
  });
  if (partials == nullptr) return;
  const Rows dw = rows_of(invocation[program::LayerNormGrad::kDW]);
  add_reduction_blocks(context.kernels, partials, reduction_blocks(x.rows), dw, grad.accumulate);
}

}  // namespace

SNUG_CPU_KIND(LayerNorm, .supports = supports);
SNUG_CPU_KIND(LayerNormGrad, .supports = supports, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
