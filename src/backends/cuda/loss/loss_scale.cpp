#include "backends/cuda/loss/kernels/loss_scale.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/loss/loss_scale.h"

namespace snug::backends::cuda {
namespace {

using program::ScaleBy;
using program::ScaledClipFactor;

void run(const ScaleBy& kind, const Invocation& invocation, CudaContext& context) {
  const Buffer& x = invocation[ScaleBy::kX];
  scale_by({floats_of(x), floats_of(invocation[ScaleBy::kScale]),
            floats_of(invocation[ScaleBy::kY]), x.elements(), kind.divides},
           context.stream.get());
}

void run(const ScaledClipFactor& clip, const Invocation& invocation, CudaContext& context) {
  scaled_clip_factor({.scaled_norm = floats_of(invocation[ScaledClipFactor::kScaledNorm]),
                      .norm = floats_of(invocation[ScaledClipFactor::kNorm]),
                      .factor = floats_of(invocation[ScaledClipFactor::kFactor]),
                      .scale = floats_of(invocation[ScaledClipFactor::kScale]),
                      .counts = floats_of(invocation[ScaledClipFactor::kCounts]),
                      .max_norm = clip.max_norm,
                      .window = static_cast<float>(clip.window),
                      .hysteresis = static_cast<float>(clip.hysteresis),
                      .least = clip.least},
                     context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(ScaleBy);
SNUG_CUDA_KIND(ScaledClipFactor);

}  // namespace snug::backends::cuda
