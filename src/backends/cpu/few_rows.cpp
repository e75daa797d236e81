#include "backends/cpu/few_rows.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

// Outputs of a task: its sums stay on the stack, and its rows of the matrix, some hundred
// kilobytes, are enough to hide what a task costs. A multiple of what kernels take at a time.
constexpr int64_t kOutputsPerTask = 96;

// Outputs [begin, end) of a row.
struct RowPart {
  int64_t row;
  int64_t begin;
  int64_t end;
};

// What is added to an output before it is rounded.
float added(const MatmulSpec& spec, const MatmulOperands& operands, int64_t row, int64_t column) {
  if (spec.add == MatmulSpec::Add::nothing) return 0.0F;
  if (spec.add == MatmulSpec::Add::destination)
    return value_at(operands.c, element_of(spec.c_type), row * spec.c_stride + column);
  return value_at(operands.addend, element_of(spec.addend_type), row * spec.addend_stride + column);
}

// c = alpha * sums [+ addend].
void finish_row(const MatmulSpec& spec, const MatmulOperands& operands, const RowPart& part,
                const float* sums, const ElementwiseKernels& kernels) {
  const Element c = element_of(spec.c_type);
  const auto [row, begin, end] = part;
  if (spec.alpha == 1.0F && spec.add == MatmulSpec::Add::nothing)
    return kernels.convert[kF32][c](
        sums, operands.c + (row * spec.c_stride + begin) * base::size_of(spec.c_type), end - begin);
  for (int64_t column = begin; column < end; ++column)
    set_value(operands.c, c, row * spec.c_stride + column,
              spec.alpha * sums[column - begin] + added(spec, operands, row, column));
}

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
    for (int64_t row = 0; row < spec.m; ++row)
      finish_row(spec, operands, {row, begin, end}, sums + row * (end - begin),
                 *context.kernels.elementwise);
  });
}

}  // namespace snug::backends::cpu
