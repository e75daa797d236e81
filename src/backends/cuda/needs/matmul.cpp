#include "backends/cuda/needs/matmul.h"

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

using program::Matmul;

bool supports_product(base::DType a, base::DType b, base::DType c) {
  if (a != b) return false;
  return a == base::DType::f32 ? c == base::DType::f32
                               : c == base::DType::f32 || c == base::DType::bf16;
}

const program::Tensor& result_of(const Matmul& matmul, const OperationView& view) {
  return matmul.accumulate ? view.update(0) : view.write(0);
}

size_t low_operand(const OperationView& view) { return view.operation.reads.size() - 2; }

bool has_few_rows(const Matmul& matmul, const OperationView& view) {
  const bool low_fits = !matmul.augmented || matmul.low_transpose_b;
  return low_fits && matmul.transpose_b && !matmul.transpose_a && !matmul.stochastic &&
         view.read(0).shape[0] <= kFewRows;
}

int64_t product_bytes(const Matmul& matmul, const OperationView& view) {
  if (!matmul.stochastic) return 0;
  return aligned(result_of(matmul, view).shape.elements() * int64_t{sizeof(float)});
}

bool supports(const Matmul& matmul, const OperationView& view, const Card&) {
  if (has_few_rows(matmul, view)) return true;
  const base::DType c = matmul.stochastic ? base::DType::f32 : result_of(matmul, view).dtype;
  const auto fits = [&](size_t operand) {
    return supports_product(view.read(operand).dtype, view.read(operand + 1).dtype, c);
  };
  return fits(0) && (!matmul.augmented || fits(low_operand(view))) &&
         (!matmul.addend || view.read(2).dtype == c);
}

int64_t workspace_bytes(const Matmul& matmul, const OperationView& view, const Card& card) {
  if (has_few_rows(matmul, view)) return 0;
  return product_bytes(matmul, view) + card.product_workspace_bytes;
}

}  // namespace snug::backends::cuda
