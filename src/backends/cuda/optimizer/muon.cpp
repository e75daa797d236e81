#include "backends/cuda/optimizer/kernels/muon.h"

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/optimizer/kernels/optimizer.h"
#include "backends/cuda/optimizer/optimizer_needs.h"
#include "backends/cuda/optimizer/optimizer_operands.h"
#include "program/kinds/optimizer/muon.h"

namespace snug::backends::cuda {
namespace {

using program::MuonMomentum;
using program::MuonStep;
using program::Normalize;

void run(const MuonMomentum& muon, const Invocation& invocation, CudaContext& context) {
  Matrix gradient = whole_matrix(invocation[MuonMomentum::kGradient]);
  Matrix momentum = whole_matrix(invocation[MuonMomentum::kMomentum]);
  Matrix direction = whole_matrix(invocation[MuonMomentum::kDirection]);
  const Walk walk = walk_flat({&gradient, &momentum, &direction});
  const float share = 1.0F - muon.momentum;
  advance_momentum({.walk = walk,
                    .gradient = gradient.operand,
                    .momentum = momentum.operand,
                    .direction = direction.operand,
                    .factor = floats_of(invocation[MuonMomentum::kFactor]),
                    .share = share,
                    .gradient_share = muon.nesterov ? share : 0.0F},
                   context.stream.get());
}

void run(const Normalize& normalized, const Invocation& invocation, CudaContext& context) {
  Matrix x = whole_matrix(invocation[Normalize::kX]);
  Matrix y = whole_matrix(invocation[Normalize::kY]);
  const Walk walk = walk_flat({&x, &y});
  auto* const norm = invocation.workspace.as<float>();
  float* const partials = norm + kNormFloats;
  const int64_t count = norm_partials(walk.rows, walk.columns);
  SquaresList list;
  list.add({.x = x.operand, .columns = walk.columns, .partials = partials, .vectors = walk.vectors},
           count);
  sum_squares(list, context.stream.get());
  finish_norm(partials, count, norm, context.stream.get());
  normalize(
      {.walk = walk, .x = x.operand, .y = y.operand, .norm = norm, .epsilon = normalized.epsilon},
      context.stream.get());
}

void run(const MuonStep& step, const Invocation& invocation, CudaContext& context) {
  Matrix direction = whole_matrix(invocation[MuonStep::kDirection]);
  Matrix weight = whole_matrix(invocation[MuonStep::kWeight]);
  Matrix master = step.has_master ? whole_matrix(invocation[MuonStep::kMaster]) : weight;
  const Walk walk = walk_flat({&direction, &weight, &master});
  step_muon({.walk = walk,
             .direction = direction.operand,
             .weight = weight.operand,
             .master = master.operand,
             .factor = floats_of(invocation[MuonStep::kFactor]),
             .learning_rate = floats_of(invocation[MuonStep::kLearningRate]),
             .weight_decay = step.weight_decay,
             .rate_scale = step.rate_scale,
             .elements = step.elements - invocation[MuonStep::kWeight].first},
            context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(MuonMomentum);
SNUG_CUDA_KIND(Normalize);
SNUG_CUDA_KIND(MuonStep);

}  // namespace snug::backends::cuda
