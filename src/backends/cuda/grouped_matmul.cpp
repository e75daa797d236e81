#include "backends/cuda/kernels/grouped_product.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::GroupedMatmul;
using program::GroupedMatmulGrad;
using program::ProductAlgorithm;

bool on_tensor_cores(ProductAlgorithm algorithm) {
  return algorithm == ProductAlgorithm::blocked_tensor_cores;
}

// Refuses what lowering for another target decided.
template <typename Struct>
class CheckedGrouped : public Prepared {
 public:
  explicit CheckedGrouped(const Struct& grouped) {
    SNUG_CHECK(
        grouped.block_rows == 0 && grouped.rest_algorithm == ProductAlgorithm::loops &&
            (grouped.algorithm == ProductAlgorithm::blocked || on_tensor_cores(grouped.algorithm)),
        "a grouped product by {} in pieces of {} rows, which the cuda backend does not run",
        base::word_of(grouped.algorithm), grouped.block_rows);
    if constexpr (std::is_same_v<Struct, GroupedMatmulGrad>)
      SNUG_CHECK(grouped.sum_rows == 0,
                 "a grouped product with sums of {} rows, which the cuda backend does not run",
                 grouped.sum_rows);
  }
};

template <typename Struct>
std::unique_ptr<Prepared> prepare(const Struct& grouped, const program::OperationView&,
                                  CudaContext&) {
  return std::make_unique<CheckedGrouped<Struct>>(grouped);
}

template <typename Struct>
void note_kernel(const Struct& grouped, const Invocation& invocation) {
  invocation.note_decision("block_rows", 0);
  invocation.note_decision("algorithm", on_tensor_cores(grouped.algorithm)
                                            ? ProductAlgorithm::blocked_tensor_cores
                                            : ProductAlgorithm::blocked);
  invocation.note_decision("rest_algorithm", ProductAlgorithm::loops);
}

void run(const GroupedMatmul& grouped, const Invocation& invocation, CudaContext& context) {
  const Matrix a = matrix_of(invocation[GroupedMatmul::kA]);
  const Matrix c = matrix_of(invocation[GroupedMatmul::kC]);
  multiply_grouped({.rows = a.rows,
                    .experts = invocation[GroupedMatmul::kB].shape[0],
                    .k = a.columns,
                    .n = c.columns,
                    .a = a.operand,
                    .b = matrix_of(invocation[GroupedMatmul::kB]).operand,
                    .c = c.operand,
                    .transpose_b = grouped.transpose_b,
                    .bounds = integers_of(invocation[GroupedMatmul::kBounds]),
                    .tensor_cores = on_tensor_cores(grouped.algorithm)},
                   context.stream.get());
  note_kernel(grouped, invocation);
}

void run(const GroupedMatmulGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix a = matrix_of(invocation[GroupedMatmulGrad::kA]);
  const Matrix b = matrix_of(invocation[GroupedMatmulGrad::kB]);
  multiply_grouped_grad({.experts = invocation[GroupedMatmulGrad::kC].shape[0],
                         .m = a.columns,
                         .n = b.columns,
                         .a = a.operand,
                         .b = b.operand,
                         .c = matrix_of(invocation[GroupedMatmulGrad::kC]).operand,
                         .accumulate = grad.accumulate,
                         .bounds = integers_of(invocation[GroupedMatmulGrad::kBounds]),
                         .tensor_cores = on_tensor_cores(grad.algorithm)},
                        context.stream.get());
  note_kernel(grad, invocation);
  invocation.note_decision("sum_rows", 0);
}

}  // namespace

SNUG_CUDA_KIND(GroupedMatmul, .prepare = prepare<GroupedMatmul>);
SNUG_CUDA_KIND(GroupedMatmulGrad, .prepare = prepare<GroupedMatmulGrad>);

}  // namespace snug::backends::cuda
