// Gated and plain activations, and softcap: passes operands to
// backends/cuda/elementwise/kernels/activations.h.
#include "backends/cuda/elementwise/kernels/activations.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "backends/gated_product.h"
#include "program/kinds/elementwise/clamped_swiglu.h"
#include "program/kinds/elementwise/gelu.h"
#include "program/kinds/elementwise/relu.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/elementwise/xielu.h"

namespace snug::backends::cuda {
namespace {

using program::ClampedSwiglu;
using program::ClampedSwigluGrad;
using program::Gelu;
using program::GeluGrad;
using program::Relu;
using program::ReluGrad;
using program::Softcap;
using program::SoftcapGrad;
using program::Xielu;
using program::XieluGrad;
using program::XieluSlope;

void run(const Relu&, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Relu::kX]);
  Matrix y = matrix_of(invocation[Relu::kY]);
  const Walk walk = walk_flat({&x, &y});
  relu({walk, x.operand, y.operand}, context.stream.get());
}

void run(const ReluGrad&, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[ReluGrad::kDY]);
  Matrix y = matrix_of(invocation[ReluGrad::kY]);
  Matrix dx = matrix_of(invocation[ReluGrad::kDX]);
  const Walk walk = walk_flat({&dy, &y, &dx});
  relu_grad({walk, dy.operand, y.operand, dx.operand}, context.stream.get());
}

void run(const Gelu& form, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Gelu::kX]);
  Matrix y = matrix_of(invocation[Gelu::kY]);
  const Walk walk = walk_flat({&x, &y});
  gelu({walk, x.operand, y.operand, form.tanh}, context.stream.get());
}

void run(const GeluGrad& form, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[GeluGrad::kDY]);
  Matrix x = matrix_of(invocation[GeluGrad::kX]);
  Matrix dx = matrix_of(invocation[GeluGrad::kDX]);
  const Walk walk = walk_flat({&dy, &x, &dx});
  gelu_grad({walk, dy.operand, x.operand, dx.operand, form.tanh}, context.stream.get());
}

template <typename Struct>
XieluNumbers numbers_of(const Invocation& invocation) {
  return {matrix_of(invocation[Struct::kAlphaP]).operand,
          matrix_of(invocation[Struct::kAlphaN]).operand,
          matrix_of(invocation[Struct::kBeta]).operand,
          matrix_of(invocation[Struct::kEpsilon]).operand};
}

void run(const Xielu&, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[Xielu::kX]);
  Matrix y = matrix_of(invocation[Xielu::kY]);
  const Walk walk = walk_flat({&x, &y});
  xielu({walk, x.operand, y.operand, numbers_of<Xielu>(invocation)}, context.stream.get());
}

void run(const XieluGrad&, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[XieluGrad::kDY]);
  Matrix x = matrix_of(invocation[XieluGrad::kX]);
  Matrix dx = matrix_of(invocation[XieluGrad::kDX]);
  const Walk walk = walk_flat({&dy, &x, &dx});
  xielu_grad({walk, dy.operand, x.operand, dx.operand, numbers_of<XieluGrad>(invocation)},
             context.stream.get());
}

void run(const XieluSlope& form, const Invocation& invocation, CudaContext& context) {
  Matrix x = matrix_of(invocation[XieluSlope::kX]);
  Matrix slope = matrix_of(invocation[XieluSlope::kSlope]);
  const Walk walk = walk_flat({&x, &slope});
  xielu_slope({walk, x.operand, slope.operand, matrix_of(invocation[XieluSlope::kAlpha]).operand,
               matrix_of(invocation[XieluSlope::kEpsilon]).operand, form.negative},
              context.stream.get());
}

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

template <GatedProduct Kind>
void run(const Kind& kind, const Invocation& invocation, CudaContext& context) {
  Matrix gate = matrix_of(invocation[Kind::kGate]);
  Matrix up = matrix_of(invocation[Kind::kUp]);
  Matrix y = matrix_of(invocation[Kind::kY]);
  const Walk walk = walk_flat({&gate, &up, &y});
  gated_mul({walk, gate.operand, up.operand, y.operand, activation_of(kind)}, context.stream.get());
}

template <GatedProductGrad Kind>
void run(const Kind& kind, const Invocation& invocation, CudaContext& context) {
  Matrix dy = matrix_of(invocation[Kind::kDY]);
  Matrix gate = matrix_of(invocation[Kind::kGate]);
  Matrix up = matrix_of(invocation[Kind::kUp]);
  Matrix dgate = matrix_of(invocation[Kind::kDGate]);
  Matrix dup = matrix_of(invocation[Kind::kDUp]);
  const Walk walk = walk_flat({&dy, &gate, &up, &dgate, &dup});
  gated_mul_grad(
      {walk, dy.operand, gate.operand, up.operand, dgate.operand, dup.operand, activation_of(kind)},
      context.stream.get());
}

void run(const ClampedSwiglu& swiglu, const Invocation& invocation, CudaContext& context) {
  const Matrix gate_up = matrix_of(invocation[ClampedSwiglu::kGateUp]);
  const Matrix y = matrix_of(invocation[ClampedSwiglu::kY]);
  clamped_swiglu(
      {walk_rows({&y, &gate_up}), gate_up.operand, y.operand, swiglu.limit, swiglu.alpha},
      context.stream.get());
}

void run(const ClampedSwigluGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[ClampedSwigluGrad::kDY]);
  const Matrix gate_up = matrix_of(invocation[ClampedSwigluGrad::kGateUp]);
  const Matrix dgate_up = matrix_of(invocation[ClampedSwigluGrad::kDGateUp]);
  clamped_swiglu_grad({walk_rows({&dy, &gate_up, &dgate_up}), dy.operand, gate_up.operand,
                       dgate_up.operand, grad.limit, grad.alpha},
                      context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Relu);
SNUG_CUDA_KIND(ReluGrad);
SNUG_CUDA_KIND(Gelu);
SNUG_CUDA_KIND(GeluGrad);
SNUG_CUDA_KIND(Softcap);
SNUG_CUDA_KIND(SoftcapGrad);
SNUG_CUDA_KIND(Xielu);
SNUG_CUDA_KIND(XieluGrad);
SNUG_CUDA_KIND(XieluSlope);
SNUG_CUDA_KIND(Multiply);
SNUG_CUDA_KIND(MultiplyGrad);
SNUG_CUDA_KIND(SigmoidMul);
SNUG_CUDA_KIND(SigmoidMulGrad);
SNUG_CUDA_KIND(SiluMul);
SNUG_CUDA_KIND(SiluMulGrad);
SNUG_CUDA_KIND(GeluMul);
SNUG_CUDA_KIND(GeluMulGrad);
SNUG_CUDA_KIND(ClampedSwiglu);
SNUG_CUDA_KIND(ClampedSwigluGrad);

}  // namespace snug::backends::cuda
