#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/product/row_products.h"
#include "program/kinds/attention/attention_sinks.h"

namespace snug::backends::cpu {
namespace {

using program::AttentionSinkGrad;

// One partial sum for each block of queries and each head; the blocks are then added in order.
int64_t workspace_bytes(const AttentionSinkGrad&, const program::OperationView& view,
                        const CpuContext&) {
  return reduction_bytes(view[AttentionSinkGrad::kO].shape.rows(),
                         view[AttentionSinkGrad::kSinks].shape.elements());
}

void run(const AttentionSinkGrad&, const Invocation& invocation, CpuContext& context) {
  const Rows d_o = rows_of(invocation[AttentionSinkGrad::kDO]);
  const Rows o = rows_of(invocation[AttentionSinkGrad::kO]);
  const Rows lse = rows_of(invocation[AttentionSinkGrad::kLse]);
  const Rows sinks = one_row_of(invocation[AttentionSinkGrad::kSinks]);
  const ElementwiseKernels& kernels = *context.kernels.elementwise;
  const int64_t heads = sinks.columns;
  const int64_t width = o.columns / heads;
  auto* partials = invocation.workspace.as<float>();
  const int64_t block_rows = reduction_block_rows(o.rows);
  parallel_ranges(o.rows, block_rows, [&](int64_t begin, int64_t end) {
    float* sums = partials + begin / block_rows * reduction_stride(heads);
    for (int64_t head = 0; head < heads; ++head) {
      float sink = 0.0F;
      kernels.convert[sinks.element][kF32](sinks.at(0, head), &sink, 1);
      const auto* of_head = reinterpret_cast<const float*>(lse.at(head));
      float sum = 0.0F;
      for (int64_t i = begin; i < end; ++i)
        sum -= std::exp(std::min(0.0F, sink - of_head[i])) *
               dot_rows(kernels, {d_o.at(i, head * width), d_o.element},
                        {o.at(i, head * width), o.element}, width);
      sums[head] = sum;
    }
  });
  add_reduction_blocks(context.kernels, partials, reduction_blocks(o.rows),
                       rows_of(invocation[AttentionSinkGrad::kDSinks]), false);
}

}  // namespace

SNUG_CPU_KIND(AttentionSinkGrad, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
