#include "backends/cpu/product/few_rows.h"

#include "backends/cpu/norm/finish_row.h"
#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {
namespace {

// Outputs in a task: its sums stay on the stack, and its rows of the matrix, some hundred
// kilobytes, are enough to hide the cost of a task. A multiple of the outputs that a kernel
// computes at a time.
constexpr int64_t kOutputsPerTask = 96;

}  // namespace

bool is_few_rows(const MatmulSpec& spec, const CpuContext& context) {
  const bool has_pairs = context.isa == Isa::v4_bf16 && spec.a_type == base::DType::bf16;
  return spec.m <= (has_pairs ? kFewRowsOfPairs : kFewRows) && spec.a_strides[1] == 1 &&
         spec.b_strides[0] == 1 && spec.a_type == spec.b_type;
}

void few_rows_product(const MatmulSpec& spec, const MatmulOperands& operands,
                      const CpuContext& context) {
  const auto multiply = context.kernels.few_rows->multiply[element_of(spec.a_type)];
  parallel_ranges(spec.n, kOutputsPerTask, [&](int64_t begin, int64_t end) {
    float sums[kFewRowsOfPairs * kOutputsPerTask];
    multiply({.x = operands.a,
              .x_stride = spec.a_strides[0],
              .rows = spec.m,
              .w = operands.b,
              .w_stride = spec.b_strides[1],
              .k = spec.k,
              .begin = begin,
              .end = end,
              .sums = sums});
    const ElementwiseKernels& kernels = *context.kernels.elementwise;
    if (spec.alpha != 1.0F)
      kernels.scale[kF32][kF32](sums, sums, spec.m * (end - begin), spec.alpha);
    for (int64_t row = 0; row < spec.m; ++row)
      finish_row(spec, operands, {row, begin, end}, sums + row * (end - begin), kernels);
  });
}

}  // namespace snug::backends::cpu
