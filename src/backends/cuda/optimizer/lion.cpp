#include "backends/cuda/optimizer/kernels/lion.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/optimizer/optimizer_operands.h"
#include "program/kinds/optimizer/lion.h"

namespace snug::backends::cuda {
namespace {

using program::Lion;

LionConstants lion_constants(const Lion& lion, const Invocation& invocation) {
  return {floats_of(invocation[Lion::kFactor]), floats_of(invocation[Lion::kLearningRate]),
          lion.beta1, lion.beta2};
}

LionTensor lion_tensor(const Lion& lion, const Invocation& invocation) {
  Matrix gradient = whole_matrix(invocation[Lion::kGradient]);
  Matrix weight = whole_matrix(invocation[Lion::kWeight]);
  Matrix momentum = whole_matrix(invocation[Lion::kMomentum]);
  Matrix master = lion.has_master ? whole_matrix(invocation[Lion::kMaster]) : weight;
  const Walk walk = walk_flat({&gradient, &weight, &momentum, &master});
  return {.elements = weight.columns,
          .weight_decay = lion.weight_decay,
          .gradient_format = gradient.operand.format,
          .weight_format = weight.operand.format,
          .vectors = walk.vectors,
          .gradient = gradient.operand.data,
          .weight = weight.operand.data,
          .momentum = momentum.operand.data,
          .master = master.operand.data};
}

void run_together(const Lion&, std::span<const Invocation> list, CudaContext& context) {
  LionLaunch launch;
  gather<Lion>(list, launch, lion_constants, lion_tensor);
  lion(launch, context.stream.get());
}

void run(const Lion& lion, const Invocation& invocation, CudaContext& context) {
  run_together(lion, {&invocation, 1}, context);
}

}  // namespace

SNUG_CUDA_KIND(Lion, .run_together = run_together);

}  // namespace snug::backends::cuda
