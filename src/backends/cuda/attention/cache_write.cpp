#include "backends/cuda/attention/kernels/key_codes.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/few_rows.h"
#include "backends/cuda/product/kernels/embedding.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cuda {
namespace {

using program::CacheWrite;

void write_codes(const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[CacheWrite::kX]);
  const Buffer& cache = invocation[CacheWrite::kCache];
  const Matrix scales = matrix_of(invocation[CacheWrite::kScales]);
  write_key_codes({.x = x.operand,
                   .rows = x.rows,
                   .heads = static_cast<int32_t>(scales.rows),
                   .head_dim = static_cast<int32_t>(x.columns / scales.rows),
                   .slots = integers_of(invocation[CacheWrite::kSlots]),
                   .cache_rows = cache.shape[0],
                   .codes = reinterpret_cast<int8_t*>(bytes_of(cache)),
                   .stride = cache.shape[1],
                   .scales = static_cast<float*>(scales.operand.data),
                   .scale_stride = scales.operand.stride},
                  context.stream.get());
}

void run(const CacheWrite& write, const Invocation& invocation, CudaContext& context) {
  if (write.quantized) return write_codes(invocation, context);
  const Matrix x = matrix_of(invocation[CacheWrite::kX]);
  const Matrix cache = matrix_of(invocation[CacheWrite::kCache]);
  cache_write({walk_rows({&x, &cache}), x.operand, cache.operand,
               integers_of(invocation[CacheWrite::kSlots]), cache.rows},
              context.stream.get());
}

void run_together(const CacheWrite&, std::span<const Invocation> list, CudaContext& context) {
  run_rotations_together(list, context);
}

}  // namespace

SNUG_CUDA_KIND(CacheWrite, .run_together = run_together);

}  // namespace snug::backends::cuda
