#include "backends/cuda/needs/matmul.h"

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/few_rows.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

using program::Matmul;

bool supports_product(base::DType a, base::DType b, base::DType c) {
  if (a != b) return false;
  return a == base::DType::f32 ? c == base::DType::f32
                               : c == base::DType::f32 || c == base::DType::bf16;
}

bool has_few_rows(const Matmul& matmul, const OperationView& view) {
  const bool low_fits = !matmul.augmented || matmul.low_transpose_b;
  return low_fits && matmul.transpose_b && !matmul.transpose_a && !matmul.stochastic &&
         view[Matmul::kA].shape[0] <= kFewRows;
}

bool is_by_cublas(const OperationView& view) {
  const auto& attributes = view.operation.attributes;
  if (const auto* matmul = std::get_if<Matmul>(&attributes)) return !has_few_rows(*matmul, view);
  return std::holds_alternative<program::LinearCrossEntropy>(attributes) ||
         std::holds_alternative<program::LinearCrossEntropyTrain>(attributes);
}

int64_t product_bytes(const Matmul& matmul, const OperationView& view) {
  if (!matmul.stochastic) return 0;
  return aligned(view[Matmul::kC].shape.elements() * int64_t{sizeof(float)});
}

namespace {

bool supports(const Matmul& matmul, const OperationView& view, const Card&) {
  if (has_few_rows(matmul, view)) return true;
  const base::DType c = matmul.stochastic ? base::DType::f32 : view[Matmul::kC].dtype;
  if (!supports_product(view[Matmul::kA].dtype, view[Matmul::kB].dtype, c)) return false;
  if (matmul.augmented &&
      !supports_product(view[Matmul::kLowA].dtype, view[Matmul::kLowB].dtype, c))
    return false;
  return !matmul.addend || view[Matmul::kAddend].dtype == c;
}

// cuBLASLt adds one product, and so do own kernels.
Matmul decide(const Matmul& matmul, const OperationView&, const Card&) {
  Matmul decided = matmul;
  decided.products = matmul.augmented ? 2 : 1;
  return decided;
}

int64_t workspace_bytes(const Matmul& matmul, const OperationView& view, const Card& card) {
  if (has_few_rows(matmul, view)) return 0;
  return product_bytes(matmul, view) + card.product_workspace_bytes;
}

}  // namespace

SNUG_CARD_NEEDS(Matmul, .supports = supports, .decide = decide, .workspace_bytes = workspace_bytes,
                .launched_together = few_rows_together);

}  // namespace snug::backends::cuda
