#include "backends/cuda/kernels/embedding.h"

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {

void run(const program::Embedding&, const Invocation& invocation, CudaContext& context) {
  const Matrix table = matrix_of(invocation.reads[0]);
  const Matrix y = matrix_of(invocation.writes[0]);
  gather_rows({walk_rows({&y, &table}), table.operand, y.operand, integers_of(invocation.reads[1]),
               table.rows},
              context.stream.get());
}

void run(const program::EmbeddingGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation.reads[0]);
  const Matrix table = matrix_of(grad.accumulate ? invocation.updates[0] : invocation.writes[0]);
  if (!grad.accumulate) {
    Matrix zeros = table;
    const Walk walk = walk_flat({&zeros});
    fill_zero({walk, zeros.operand}, context.stream.get());
  }
  add_embedding_grad({walk_rows({&dy, &table}), dy.operand, table.operand,
                      integers_of(invocation.reads[1]), table.rows},
                     context.stream.get());
}

void run(const program::CacheWrite&, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix cache = matrix_of(invocation.updates[0]);
  cache_write({walk_rows({&x, &cache}), x.operand, cache.operand, integers_of(invocation.reads[1]),
               cache.rows},
              context.stream.get());
}

}  // namespace snug::backends::cuda
