#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "program/kinds/expert/top_k.h"

namespace snug::backends::cuda {
namespace {

using program::TopK;

// Only whole f32 tensors, whose rows fit in an axis of the grid, and a k that leaves room in a
// block for other elements.
bool supports(const TopK& top, const OperationView& view, const Card&) {
  const program::Tensor& x = view[TopK::kX];
  return !x.is_view() && x.dtype == base::DType::f32 && x.shape[0] <= kMaxGridY &&
         top.k <= kTopKElements / 2;
}

int64_t workspace_bytes(const TopK& top, const OperationView& view, const Card&) {
  const program::Shape& shape = view[TopK::kX].shape;
  return top_k_bytes(shape[0], shape[1], top.k);
}

// One launch for the largest elements of parts of rows, one for those of whole rows.
int32_t launches(const TopK&, const OperationView&, const Card&) { return 2; }

}  // namespace

SNUG_CARD_NEEDS(TopK, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);

}  // namespace snug::backends::cuda
