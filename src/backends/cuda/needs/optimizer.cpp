#include <algorithm>

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

using program::AdamW;
using program::AdamW8bit;

int64_t workspace_bytes(const program::GlobalNorm&, const OperationView& view, const Card&) {
  int64_t partials = 0;
  for (const program::TensorId gradient : view.operation.reads) {
    const program::Shape& shape = view.program.tensor(gradient).shape;
    // Contiguous or not, never fewer than what run() uses.
    partials +=
        std::max(norm_partials(shape.rows(), shape.columns()), norm_partials(1, shape.elements()));
  }
  return partials * int64_t{sizeof(float)};
}

bool supports(const AdamW& adamw, const OperationView& view, const Card&) {
  const base::DType moments = adamw.stochastic ? base::DType::bf16 : base::DType::f32;
  if (view[AdamW::kFirstMoment].dtype != moments || view[AdamW::kSecondMoment].dtype != moments)
    return false;
  if (adamw.stochastic) return !adamw.has_master && view[AdamW::kWeight].dtype == moments;
  return view[adamw.has_master ? AdamW::kMaster : AdamW::kWeight].dtype == base::DType::f32;
}

bool supports(const AdamW8bit&, const OperationView& view, const Card&) {
  return view[AdamW8bit::kFirstScale].dtype == base::DType::f32 &&
         view[AdamW8bit::kSecondScale].dtype == base::DType::f32;
}

}  // namespace snug::backends::cuda
