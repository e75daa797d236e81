#include "backends/cuda/kernels/optimizer.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/optimizer_operands.h"

namespace snug::backends::cuda {

int64_t workspace_bytes(const program::GlobalNorm&, const program::OperationView& view,
                        const CudaContext&) {
  int64_t partials = 0;
  for (size_t i = 0; i < view.operation.reads.size(); ++i) {
    const program::Shape& shape = view.read(i).shape;
    // Contiguous or not, never fewer than what run() uses.
    partials +=
        std::max(norm_partials(shape.rows(), shape.columns()), norm_partials(1, shape.elements()));
  }
  return partials * int64_t{sizeof(float)};
}

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

bool supports(const program::AdamW& adamw, const program::OperationView& view, const CudaContext&) {
  const auto type = [&](size_t i) { return view.update(i).dtype; };
  const base::DType moments = adamw.stochastic ? base::DType::bf16 : base::DType::f32;
  if (type(1) != moments || type(2) != moments) return false;
  if (adamw.stochastic) return view.operation.updates.size() == 3 && type(0) == moments;
  return type(view.operation.updates.size() == 4 ? 3 : 0) == base::DType::f32;
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
