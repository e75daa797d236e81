#include "backends/cuda/kernels/activations.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::Softcap;
using program::SoftcapGrad;

void run(const Softcap& form, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Softcap::kX]);
  Matrix y = matrix_of(invocation[Softcap::kY]);
  const Walk walk = walk_flat({&x, &y});
  softcap({walk, x.operand, y.operand, form.cap}, context.stream.get());
}

void run(const SoftcapGrad& form, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[SoftcapGrad::kDY]);
  Matrix y = matrix_of(invocation[SoftcapGrad::kY]);
  Matrix dx = matrix_of(invocation[SoftcapGrad::kDX]);
  const Walk walk = walk_flat({&dy, &y, &dx});
  softcap_grad({walk, dy.operand, y.operand, dx.operand, form.cap}, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Softcap);
SNUG_CUDA_KIND(SoftcapGrad);

}  // namespace snug::backends::cuda
