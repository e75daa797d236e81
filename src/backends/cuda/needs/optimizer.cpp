#include <algorithm>

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

int64_t workspace_bytes(const program::GlobalNorm&, const OperationView& view, const Card&) {
  int64_t partials = 0;
  for (size_t i = 0; i < view.operation.reads.size(); ++i) {
    const program::Shape& shape = view.read(i).shape;
    // Contiguous or not, never fewer than what run() uses.
    partials +=
        std::max(norm_partials(shape.rows(), shape.columns()), norm_partials(1, shape.elements()));
  }
  return partials * int64_t{sizeof(float)};
}

bool supports(const program::AdamW& adamw, const OperationView& view, const Card&) {
  const auto type = [&](size_t i) { return view.update(i).dtype; };
  const base::DType moments = adamw.stochastic ? base::DType::bf16 : base::DType::f32;
  if (type(1) != moments || type(2) != moments) return false;
  if (adamw.stochastic) return view.operation.updates.size() == 3 && type(0) == moments;
  return type(view.operation.updates.size() == 4 ? 3 : 0) == base::DType::f32;
}

bool supports(const program::AdamW8bit&, const OperationView& view, const Card&) {
  return view.update(3).dtype == base::DType::f32 && view.update(4).dtype == base::DType::f32;
}

}  // namespace snug::backends::cuda
