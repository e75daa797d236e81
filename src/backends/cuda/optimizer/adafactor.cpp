#include "backends/cuda/optimizer/kernels/adafactor.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/optimizer/optimizer_operands.h"
#include "program/kinds/optimizer/adafactor.h"

namespace snug::backends::cuda {
namespace {

using program::Adafactor;

void run(const Adafactor& attributes, const Invocation& invocation, CudaContext& context) {
  const program::Shape& shape = invocation[Adafactor::kWeight].shape;
  const bool factored = attributes.factored;
  const DeviceRows weight = whole_matrix(invocation[Adafactor::kWeight]).operand;
  float* const rows = floats_of(invocation[Adafactor::kRows]);
  const AdafactorRun run{
      .rows = factored ? shape[0] : 1,
      .columns = factored ? shape[1] : shape.elements(),
      .factored = factored,
      .gradient = whole_matrix(invocation[Adafactor::kGradient]).operand,
      .weight = weight,
      .master = attributes.has_master ? floats_of(invocation[Adafactor::kMaster])
                                      : static_cast<float*>(weight.data),
      .row_moment = rows,
      .column_moment = factored ? floats_of(invocation[Adafactor::kColumns]) : rows,
      .scratch = invocation.workspace.as<float>(),
      .factor = floats_of(invocation[Adafactor::kFactor]),
      .learning_rate = floats_of(invocation[Adafactor::kLearningRate]),
      .step = integers_of(invocation[Adafactor::kStep]),
      .decay_rate = attributes.decay_rate,
      .epsilon = attributes.epsilon,
      .clip_threshold = attributes.clip_threshold,
      .weight_decay = attributes.weight_decay};
  adafactor(run, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Adafactor);

}  // namespace snug::backends::cuda
