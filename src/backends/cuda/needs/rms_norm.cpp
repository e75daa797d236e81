#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/few_rows.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {
namespace {

using program::RmsNormGrad;

// A block keeps the sums of its columns.
bool supports(const RmsNormGrad& grad, const OperationView& view, const Card& card) {
  return !grad.weight_gradient ||
         norm_shared_bytes(view[RmsNormGrad::kX].shape.columns()) + kDeclaredSharedBytes <=
             card.shared_bytes;
}

int64_t workspace_bytes(const RmsNormGrad& grad, const OperationView& view, const Card&) {
  if (!grad.weight_gradient) return 0;
  const program::Shape& shape = view[RmsNormGrad::kX].shape;
  return norm_weight_grad_bytes(shape.rows(), shape.columns());
}

// The weight's gradient is summed over rows, in two more.
int32_t launches(const RmsNormGrad& grad, const OperationView&) {
  return grad.weight_gradient ? 3 : 1;
}

}  // namespace

SNUG_CARD_NEEDS(RmsNormGrad, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(RmsNorm, .launched_together = few_rows_together);

}  // namespace snug::backends::cuda
