#include <type_traits>

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "program/kinds/norm/layer_norm.h"
#include "program/kinds/norm/rms_norm.h"

namespace snug::backends::cuda {
namespace {

template <typename Struct>
concept NormGrad =
    std::is_same_v<Struct, program::RmsNormGrad> || std::is_same_v<Struct, program::LayerNormGrad>;

// With a weight gradient, a block keeps sums for all columns in shared memory.
template <NormGrad Grad>
bool supports(const Grad& grad, const OperationView& view, const Card& card) {
  return !grad.weight_gradient ||
         norm_shared_bytes(view[Grad::kX].shape.columns()) + kDeclaredSharedBytes <=
             card.shared_bytes;
}

template <NormGrad Grad>
int64_t workspace_bytes(const Grad& grad, const OperationView& view, const Card&) {
  if (!grad.weight_gradient) return 0;
  const program::Shape& shape = view[Grad::kX].shape;
  return norm_weight_grad_bytes(shape.rows(), shape.columns());
}

// Summing the weight's gradient over rows takes two more launches.
template <NormGrad Grad>
int32_t launches(const Grad& grad, const OperationView&, const Card&) {
  return grad.weight_gradient ? 3 : 1;
}

}  // namespace

SNUG_CARD_NEEDS(RmsNorm, .launched_together = few_rows_together);
SNUG_CARD_NEEDS(RmsNormGrad, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(LayerNorm);
SNUG_CARD_NEEDS(LayerNormGrad, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);

}  // namespace snug::backends::cuda
