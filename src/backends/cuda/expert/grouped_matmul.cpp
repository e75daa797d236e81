#include "backends/cuda/expert/kernels/grouped_product.h"

#include <algorithm>

#include "backends/cuda/expert/expert_needs.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/few_rows.h"
#include "backends/cuda/product/kernels/nf4.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"
#include "program/kinds/product/grouped_matmul.h"

namespace snug::backends::cuda {
namespace {

using program::ExpertChoice;
using program::GroupedMatmul;
using program::GroupedMatmulGrad;
using program::ProductAlgorithm;

bool on_tensor_cores(ProductAlgorithm algorithm) {
  return algorithm == ProductAlgorithm::blocked_tensor_cores;
}

// Refuses an operation that cannot be computed here as decided. Null, since there is nothing to
// keep.
template <typename Struct>
std::unique_ptr<Prepared> prepare(const Struct& grouped, const program::OperationView& view,
                                  CudaContext& context) {
  const ExpertChoice& choice = grouped.choice;
  const ProductAlgorithm best =
      grouped_algorithm(view[Struct::kA], grouped_factor(grouped, view), context.device.card);
  SNUG_CHECK(choice.block_rows == 0 && choice.rest == ProductAlgorithm::loops &&
                 (choice.algorithm == ProductAlgorithm::blocked || choice.algorithm == best),
             "a grouped product by {} in pieces of {} rows, which the cuda backend does not run",
             base::word_of(choice.algorithm), choice.block_rows);
  SNUG_CHECK(!copies_operands(grouped), "a grouped product that copies operands, as no card does");
  SNUG_CHECK(choice.sum_rows == 0,
             "a grouped product with sums of {} rows, which the cuda backend does not run",
             choice.sum_rows);
  return nullptr;
}

// Records which of the two kernels was queued, for `rows` rows at once.
template <typename Struct>
void note_kernel(bool tensor_cores, int64_t rows, const Invocation& invocation) {
  for (const int64_t each : {rows, int64_t{0}}) invocation.note_piece(each);
  invocation.note_decision<&Struct::choice>(
      {.algorithm =
           tensor_cores ? ProductAlgorithm::blocked_tensor_cores : ProductAlgorithm::blocked});
}

// Dequantises the matrices of some experts at a time, and multiplies their rows.
void multiply_stored(const Nf4Weight& stored, const GroupedRun& all, const Invocation& invocation,
                     CudaContext& context) {
  const int64_t elements = all.k * all.n;
  const int64_t at_once = experts_at_once(*invocation.view);
  GroupedRun run = all;
  run.b = {invocation.workspace.data, all.transpose_b ? all.k : all.n, all.a.format};
  for (int64_t first = 0; first < all.experts; first += at_once) {
    run.experts = std::min(at_once, all.experts - first);
    run.bounds = all.bounds + 2 * first;
    dequantize_nf4({.walk = {1, run.experts * elements, elements % kVectorElements == 0},
                    .stored = stored,
                    .w = run.b,
                    .first = first * elements,
                    .bounds = run.bounds,
                    .matrix_elements = elements},
                   context.stream.get());
    multiply_grouped(run, context.stream.get());
  }
}

void run(const GroupedMatmul& grouped, const Invocation& invocation, CudaContext& context) {
  const Matrix a = matrix_of(invocation[GroupedMatmul::kA]);
  const Matrix c = matrix_of(invocation[GroupedMatmul::kC]);
  GroupedRun run{.rows = a.rows,
                 .experts = invocation[GroupedMatmul::kBounds].shape[0],
                 .k = a.columns,
                 .n = c.columns,
                 .a = a.operand,
                 .b = {},
                 .c = c.operand,
                 .transpose_b = grouped.transpose_b,
                 .bounds = integers_of(invocation[GroupedMatmul::kBounds]),
                 .tensor_cores = on_tensor_cores(grouped.choice.algorithm)};
  if (grouped.stored) {
    multiply_stored(nf4_weight(grouped, invocation), run, invocation, context);
  } else {
    run.b = matrix_of(invocation[GroupedMatmul::kB]).operand;
    multiply_grouped(run, context.stream.get());
  }
  note_kernel<GroupedMatmul>(run.tensor_cores, run.rows, invocation);
}

void run(const GroupedMatmulGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix a = matrix_of(invocation[GroupedMatmulGrad::kA]);
  const Matrix b = matrix_of(invocation[GroupedMatmulGrad::kB]);
  const GroupedGradRun run{.experts = invocation[GroupedMatmulGrad::kC].shape[0],
                           .m = a.columns,
                           .n = b.columns,
                           .a = a.operand,
                           .b = b.operand,
                           .c = matrix_of(invocation[GroupedMatmulGrad::kC]).operand,
                           .accumulate = grad.accumulate,
                           .bounds = integers_of(invocation[GroupedMatmulGrad::kBounds]),
                           .tensor_cores = on_tensor_cores(grad.choice.algorithm)};
  multiply_grouped_grad(run, context.stream.get());
  note_kernel<GroupedMatmulGrad>(run.tensor_cores, a.rows, invocation);
}

}  // namespace

SNUG_CUDA_KIND(GroupedMatmul, .prepare = prepare<GroupedMatmul>);
SNUG_CUDA_KIND(GroupedMatmulGrad, .prepare = prepare<GroupedMatmulGrad>);

}  // namespace snug::backends::cuda
