#include "backends/cuda/optimizer/kernels/optimizer.h"

#include <algorithm>

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/optimizer/optimizer_needs.h"
#include "backends/cuda/optimizer/optimizer_operands.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::cuda {
namespace {

using program::AdamW;
using program::ClipFactor;
using program::GlobalNorm;

MasterTensor master_tensor(const AdamW& adamw, const Invocation& invocation) {
  Matrix gradient = whole_matrix(invocation[AdamW::kGradient]);
  Matrix weight = whole_matrix(invocation[AdamW::kWeight]);
  Matrix first = whole_matrix(invocation[AdamW::kFirstMoment]);
  Matrix second = whole_matrix(invocation[AdamW::kSecondMoment]);
  Matrix master = adamw.has_master ? whole_matrix(invocation[AdamW::kMaster]) : weight;
  MasterTensor tensor{adamw_tensor(adamw, gradient, weight, invocation[AdamW::kWeight].first),
                      {first.operand.data, second.operand.data},
                      master.operand.data};
  tensor.vectors = walk_flat({&gradient, &weight, &first, &second, &master}).vectors;
  return tensor;
}

StochasticTensor stochastic_tensor(const AdamW& adamw, const Invocation& invocation) {
  StochasticTensor tensor{
      adamw_tensor(adamw, whole_matrix(invocation[AdamW::kGradient]),
                   whole_matrix(invocation[AdamW::kWeight]), invocation[AdamW::kWeight].first),
      {whole_matrix(invocation[AdamW::kFirstMoment]).operand.data,
       whole_matrix(invocation[AdamW::kSecondMoment]).operand.data}};
  tensor.vectors = is_aligned(tensor.gradient) && is_aligned(tensor.weight) &&
                   is_aligned(tensor.moments[0]) && is_aligned(tensor.moments[1]);
  return tensor;
}

bool overlaps_any(const Buffer& buffer, std::span<const Buffer> others) {
  return std::any_of(others.begin(), others.end(),
                     [&](const Buffer& other) { return overlap(buffer, other); });
}

}  // namespace

bool is_independent(const Invocation& invocation, std::span<const Invocation> before) {
  const auto is_changed = [&](const Buffer& buffer) {
    return std::any_of(before.begin(), before.end(), [&](const Invocation& other) {
      return overlaps_any(buffer, other.updates);
    });
  };
  const auto is_read = [&](const Buffer& buffer) {
    return std::any_of(before.begin(), before.end(),
                       [&](const Invocation& other) { return overlaps_any(buffer, other.reads); });
  };
  return std::none_of(invocation.reads.begin(), invocation.reads.end(), is_changed) &&
         std::none_of(invocation.updates.begin(), invocation.updates.end(),
                      [&](const Buffer& b) { return is_changed(b) || is_read(b); });
}

namespace {

static_assert(sizeof(SquaresList::at) / sizeof(SquaresTensor) == kTensorsPerNorm);

void run(const GlobalNorm&, const Invocation& invocation, CudaContext& context) {
  auto* partials = invocation.workspace.as<float>();
  int64_t used = 0;
  SquaresList list;
  for (const Buffer& buffer : invocation.all(program::Access::read)) {
    Matrix x = matrix_of(buffer);
    const Walk walk = walk_flat({&x});
    const int64_t count = norm_partials(walk.rows, walk.columns);
    list.add({.x = x.operand,
              .columns = walk.columns,
              .partials = partials + used,
              .vectors = walk.vectors},
             count);
    used += count;
    if (!list.is_full()) continue;
    sum_squares(list, context.stream.get());
    list = {};
  }
  sum_squares(list, context.stream.get());
  finish_norm(partials, used, floats_of(invocation[GlobalNorm::kNorm]), context.stream.get());
}

void run(const ClipFactor& clip, const Invocation& invocation, CudaContext& context) {
  clip_factor(floats_of(invocation[ClipFactor::kNorm]), clip.max_norm,
              floats_of(invocation[ClipFactor::kFactor]), context.stream.get());
}

void run_together(const AdamW& first, std::span<const Invocation> list, CudaContext& context) {
  if (first.stochastic) {
    AdamWStochastic launch;
    gather<AdamW>(list, launch, adamw_constants<AdamW>, stochastic_tensor);
    adamw(launch, context.stream.get());
  } else {
    AdamWMaster launch;
    gather<AdamW>(list, launch, adamw_constants<AdamW>, master_tensor);
    adamw(launch, context.stream.get());
  }
}

void run(const AdamW& adamw, const Invocation& invocation, CudaContext& context) {
  run_together(adamw, {&invocation, 1}, context);
}

}  // namespace

SNUG_CUDA_KIND(GlobalNorm);
SNUG_CUDA_KIND(ClipFactor);
SNUG_CUDA_KIND(AdamW, .run_together = run_together);

}  // namespace snug::backends::cuda
