#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

// The reciprocal roots of all rows, then the partial sums of the weight's gradient.
int64_t workspace_bytes(const program::RmsNormGrad& grad, const OperationView& view, const Card&) {
  if (!grad.weight_gradient) return 0;
  const program::Shape& shape = view.read(1).shape;
  return shape.rows() * int64_t{sizeof(float)} + column_sums_bytes(shape.rows(), shape.columns());
}

}  // namespace snug::backends::cuda
