#include "backends/cuda/kernels/optimizer.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/optimizer_operands.h"

namespace snug::backends::cuda {

void run(const program::GlobalNorm&, const Invocation& invocation, CudaContext& context) {
  auto* partials = invocation.workspace.as<float>();
  int64_t used = 0;
  for (const Buffer& buffer : invocation.reads) {
    Matrix x = matrix_of(buffer);
    const Walk walk = walk_flat({&x});
    sum_squares({walk, x.operand, partials + used}, context.stream.get());
    used += norm_partials(walk.rows, walk.columns);
  }
  finish_norm(partials, used, floats_of(invocation.writes[0]), context.stream.get());
}

void run(const program::ClipFactor& clip, const Invocation& invocation, CudaContext& context) {
  clip_factor(floats_of(invocation.reads[0]), clip.max_norm, floats_of(invocation.writes[0]),
              context.stream.get());
}

void run(const program::AdamW& attributes, const Invocation& invocation, CudaContext& context) {
  Matrix gradient = whole_matrix(invocation.reads[0]);
  Matrix weight = whole_matrix(invocation.updates[0]);
  Matrix first = whole_matrix(invocation.updates[1]);
  Matrix second = whole_matrix(invocation.updates[2]);
  Matrix master = whole_matrix(invocation.updates.back());
  if (invocation.updates.size() == 3) master = weight;
  const AdamWRun run{.walk = walk_flat({&gradient, &weight, &first, &second, &master}),
                     .scalars = adamw_scalars(invocation),
                     .constants = adamw_constants(attributes),
                     .gradient = gradient.operand,
                     .weight = weight.operand,
                     .first_moment = first.operand,
                     .second_moment = second.operand,
                     .master = master.operand};
  if (attributes.stochastic)
    adamw_stochastic(run, context.stream.get());
  else
    adamw(run, context.stream.get());
}

}  // namespace snug::backends::cuda
