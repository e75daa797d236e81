// The gradient of a norm over rows, for any norm: the rows that it reads and writes, and the
// weight's gradient, which is summed over blocks of rows that are then added in order. Operands are
// dy, x, w and, depending on the attributes, addend; results are dx and, depending on the
// attributes, dw.
#pragma once

#include <algorithm>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {

// One row of `d` elements. dy, x, addend and dx have the same type; w has its own.
struct NormGradRow {
  const void* dy;
  const void* x;
  const void* w;
  const void* addend;  // null if none
  void* dx;
  float* dw;  // null: not computed; else the row's contribution is added
  int64_t d;
};

template <typename Grad>
bool supports_norm_grad(const Grad& grad, const program::OperationView& view) {
  const base::DType dtype = view[Grad::kDY].dtype;
  return view[Grad::kX].dtype == dtype && view[Grad::kDX].dtype == dtype &&
         (!grad.addend || view[Grad::kAddend].dtype == dtype);
}

template <typename Grad>
int64_t norm_grad_workspace_bytes(const Grad& grad, const program::OperationView& view) {
  if (!grad.weight_gradient) return 0;
  const program::Shape& dy = view[Grad::kDY].shape;
  return reduction_bytes(dy.rows(), dy.columns());
}

// kernel_of(element of x, element of w) returns a function that takes a NormGradRow.
template <typename Grad, typename KernelOf>
void run_norm_grad(const Grad& grad, const Invocation& invocation, const CpuContext& context,
                   const KernelOf& kernel_of) {
  const Rows dy = rows_of(invocation[Grad::kDY]);
  const Rows x = rows_of(invocation[Grad::kX]);
  const Rows w = flattened(rows_of(invocation[Grad::kW]));
  const Rows addend = grad.addend ? rows_of(invocation[Grad::kAddend]) : Rows{};
  const Rows dx = rows_of(invocation[Grad::kDX]);
  float* partials = grad.weight_gradient ? invocation.workspace.as<float>() : nullptr;
  const auto backward = kernel_of(x.element, w.element);
  const int64_t block_rows = reduction_block_rows(x.rows);
  parallel_ranges(x.rows, block_rows, [&](int64_t begin, int64_t end) {
    float* dw = nullptr;
    if (partials != nullptr) {
      dw = partials + begin / block_rows * reduction_stride(x.columns);
      std::fill(dw, dw + x.columns, 0.0F);
    }
    for (int64_t row = begin; row < end; ++row)
      backward(NormGradRow{.dy = dy.at(row),
                           .x = x.at(row),
                           .w = w.at(0),
                           .addend = grad.addend ? addend.at(row) : nullptr,
                           .dx = dx.at(row),
                           .dw = dw,
                           .d = x.columns});
  });
  if (partials == nullptr) return;
  const Rows dw = rows_of(invocation[Grad::kDW]);
  add_reduction_blocks(context.kernels, partials, reduction_blocks(x.rows), dw, grad.accumulate);
}

}  // namespace snug::backends::cpu
