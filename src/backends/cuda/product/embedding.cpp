#include "backends/cuda/product/kernels/embedding.h"

#include "backends/cuda/elementwise/kernels/elementwise.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/product/embedding.h"

namespace snug::backends::cuda {
namespace {

using program::Embedding;
using program::EmbeddingGrad;

void run(const Embedding& embedding, const Invocation& invocation, CudaContext& context) {
  const Matrix table = matrix_of(invocation[Embedding::kTable]);
  const Matrix y = matrix_of(invocation[Embedding::kY]);
  const int32_t* ids = integers_of(invocation[Embedding::kIds]);
  if (embedding.transposed)
    gather_columns({walk_rows({&y}), table.operand, y.operand, ids, table.columns},
                   context.stream.get());
  else
    gather_rows({walk_rows({&y, &table}), table.operand, y.operand, ids, table.rows},
                context.stream.get());
}

void run(const EmbeddingGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[EmbeddingGrad::kDY]);
  const Matrix table = matrix_of(invocation[EmbeddingGrad::kDTable]);
  if (!grad.accumulate) {
    Matrix zeros = table;
    const Walk walk = walk_flat({&zeros});
    fill_zero({walk, zeros.operand}, context.stream.get());
  }
  const int32_t* ids = integers_of(invocation[EmbeddingGrad::kIds]);
  const Walk walk = grad.transposed ? walk_rows({&dy}) : walk_rows({&dy, &table});
  add_embedding_grad({walk, dy.operand, table.operand, ids,
                      grad.transposed ? table.columns : table.rows, grad.transposed},
                     context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Embedding);
SNUG_CUDA_KIND(EmbeddingGrad);

}  // namespace snug::backends::cuda
