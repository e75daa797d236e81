#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "program/kinds/expert/top_k.h"

namespace snug::backends::cuda {
namespace {

using program::TopK;

// Takes whole tensors of f32, whose rows are an axis of the grid; what is kept leaves room for
// more.
bool supports(const TopK& top, const OperationView& view, const Card&) {
  const program::Tensor& x = view[TopK::kX];
  return !x.is_view() && x.dtype == base::DType::f32 && x.shape[0] <= kMaxGridY &&
         top.k <= kTopKElements / 2;
}

int64_t workspace_bytes(const TopK& top, const OperationView& view, const Card&) {
  const program::Shape& shape = view[TopK::kX].shape;
  return top_k_bytes(shape[0], shape[1], top.k);
}

// The largest of parts of rows, then of rows.
int32_t launches(const TopK&, const OperationView&, const Card&) { return 2; }

}  // namespace

SNUG_CARD_NEEDS(TopK, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);

}  // namespace snug::backends::cuda
