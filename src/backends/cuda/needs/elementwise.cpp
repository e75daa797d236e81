#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

int64_t workspace_bytes(const program::SumRows&, const OperationView& view, const Card&) {
  const program::Shape& shape = view[program::SumRows::kX].shape;
  return column_sums_bytes(shape[0], shape[1]);
}

}  // namespace snug::backends::cuda
