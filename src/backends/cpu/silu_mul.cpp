#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

bool of_one_type(const program::OperationView& view) {
  const base::DType dtype = view.read(0).dtype;
  bool same = true;
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    if (id != view.operation.workspace) same = same && view.program.tensor(id).dtype == dtype;
  });
  return same;
}

}  // namespace

bool supports(const program::SiluMul&, const program::OperationView& view, const CpuContext&) {
  return of_one_type(view);
}

void run(const program::SiluMul&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation.reads[0]), rows_of(invocation.reads[1]),
                           rows_of(invocation.writes[0])};
  const auto forward = context.kernels.silu_mul->forward[tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], at[2], n); });
}

bool supports(const program::SiluMulGrad&, const program::OperationView& view, const CpuContext&) {
  return of_one_type(view);
}

void run(const program::SiluMulGrad&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation.reads[0]), rows_of(invocation.reads[1]),
                           rows_of(invocation.reads[2]), rows_of(invocation.writes[0]),
                           rows_of(invocation.writes[1])};
  const auto backward = context.kernels.silu_mul->backward[tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) {
    backward({at[0], at[1], at[2], at[3], at[4], n});
  });
}

}  // namespace snug::backends::cpu
