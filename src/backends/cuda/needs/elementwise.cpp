#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {
namespace {

int64_t workspace_bytes(const program::SumRows&, const OperationView& view, const Card&) {
  const program::Shape& shape = view[program::SumRows::kX].shape;
  return column_sums_bytes(shape[0], shape[1]);
}

}  // namespace

SNUG_CARD_NEEDS(SumRows, .workspace_bytes = workspace_bytes);
SNUG_CARD_NEEDS(Add);
SNUG_CARD_NEEDS(Accumulate);
SNUG_CARD_NEEDS(AddBias);
SNUG_CARD_NEEDS(Dropout);
SNUG_CARD_NEEDS(Cast);

}  // namespace snug::backends::cuda
