#include "backends/cuda/expert/kernels/top_k.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/expert/top_k.h"

namespace snug::backends::cuda {
namespace {

using program::TopK;

void run(const TopK& top, const Invocation& invocation, CudaContext& context) {
  const Buffer& x = invocation[TopK::kX];
  top_k({.rows = x.shape[0],
         .columns = x.shape[1],
         .k = top.k,
         .x = floats_of(x),
         .values = floats_of(invocation[TopK::kValues]),
         .ids = invocation[TopK::kIds].as<int32_t>(),
         .kept = invocation.workspace.as<uint64_t>()},
        context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(TopK);

}  // namespace snug::backends::cuda
