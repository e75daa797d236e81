#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {

bool supports(const program::RmsNorm&, const program::OperationView& view, const CpuContext&) {
  return view.read(0).dtype == view.write(0).dtype;
}

void run(const program::RmsNorm& norm, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation.reads[0]);
  const Rows w = flattened(rows_of(invocation.reads[1]));
  const Rows y = rows_of(invocation.writes[0]);
  const auto forward = context.kernels.rms_norm->forward[x.element][w.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      forward(x.at(row), w.at(0), y.at(row), x.columns, norm.epsilon);
  });
}

bool supports(const program::RmsNormGrad& grad, const program::OperationView& view,
              const CpuContext&) {
  const base::DType dtype = view.read(0).dtype;
  return view.read(1).dtype == dtype && view.write(0).dtype == dtype &&
         (!grad.addend || view.read(3).dtype == dtype);
}

int64_t workspace_bytes(const program::RmsNormGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  if (!grad.weight_gradient) return 0;
  return reduction_bytes(view.read(0).shape.rows(), view.read(0).shape.columns());
}

void run(const program::RmsNormGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation.reads[0]);
  const Rows x = rows_of(invocation.reads[1]);
  const Rows w = flattened(rows_of(invocation.reads[2]));
  const Rows addend = grad.addend ? rows_of(invocation.reads[3]) : Rows{};
  const Rows dx = rows_of(invocation.writes[0]);
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
                .epsilon = grad.epsilon});
  });
  if (partials == nullptr) return;
  const Rows dw = rows_of(grad.accumulate ? invocation.updates[0] : invocation.writes[1]);
  add_reduction_blocks(context.kernels, partials, reduction_blocks(x.rows), dw, grad.accumulate);
}

}  // namespace snug::backends::cpu
