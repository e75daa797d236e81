#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"

namespace snug::backends::cpu {
namespace {

using program::ClampedSwiglu;
using program::ClampedSwigluGrad;

// Rows of so many pairs that a task has.
int64_t rows_of_pairs(int64_t pairs) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, pairs));
}

bool supports(const ClampedSwiglu&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[ClampedSwiglu::kY].dtype);
}

void run(const ClampedSwiglu& swiglu, const Invocation& invocation, CpuContext& context) {
  const Rows gate_up = rows_of(invocation[ClampedSwiglu::kGateUp]);
  const Rows y = rows_of(invocation[ClampedSwiglu::kY]);
  const auto forward = context.kernels.clamped_swiglu->forward[y.element];
  parallel_ranges(y.rows, rows_of_pairs(y.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      forward({swiglu.limit, swiglu.alpha}, gate_up.at(row), y.at(row), y.columns);
  });
}

bool supports(const ClampedSwigluGrad&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[ClampedSwigluGrad::kDY].dtype);
}

void run(const ClampedSwigluGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[ClampedSwigluGrad::kDY]);
  const Rows gate_up = rows_of(invocation[ClampedSwigluGrad::kGateUp]);
  const Rows dgate_up = rows_of(invocation[ClampedSwigluGrad::kDGateUp]);
  const auto backward = context.kernels.clamped_swiglu->backward[dy.element];
  parallel_ranges(dy.rows, rows_of_pairs(dy.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      backward(
          {{grad.limit, grad.alpha}, dy.at(row), gate_up.at(row), dgate_up.at(row), dy.columns});
  });
}

}  // namespace

SNUG_CPU_KIND(ClampedSwiglu, .supports = supports);
SNUG_CPU_KIND(ClampedSwigluGrad, .supports = supports);

}  // namespace snug::backends::cpu
