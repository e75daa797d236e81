#include "backends/cuda/product/matmul_needs.h"

#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "program/kinds/product/matmul.h"

namespace snug::backends::cuda {

using program::Matmul;
using program::ProductAlgorithm;

bool supports_product(base::DType a, base::DType b, base::DType c) {
  return a == b && (c == a || c == base::DType::f32);
}

bool has_few_rows(const Matmul& matmul, const OperationView& view) {
  if (!matmul.transpose_b || matmul.transpose_a || matmul.stochastic) return false;
  const int64_t rows = view[Matmul::kA].shape[0];
  if (!are_few_rows(rows, few_rows_algorithm(view[Matmul::kA], view[Matmul::kB]))) return false;
  if (!matmul.augmented) return true;
  return matmul.low_transpose_b &&
         are_few_rows(rows, few_rows_algorithm(view[Matmul::kLowA], view[Matmul::kLowB]));
}

namespace {

StoredMatrix result_matrix(const Matmul& matmul, const OperationView& view) {
  const StoredMatrix c = stored_matrix(view[Matmul::kC]);
  return matmul.stochastic ? dense_matrix(base::DType::f32, c.rows, c.columns) : c;
}

// The product that runs first, which reads the addend or the previous contents of c.
ProductShape first_shape(const Matmul& matmul, const OperationView& view) {
  ProductShape shape;
  shape.c = result_matrix(matmul, view);
  shape.beta = matmul.addend || (matmul.accumulate && !matmul.stochastic) ? 1.0F : 0.0F;
  shape.addend = matmul.addend ? stored_matrix(view[Matmul::kAddend]) : shape.c;
  return shape;
}

}  // namespace

ProductShape main_shape(const Matmul& matmul, const OperationView& view) {
  ProductShape shape = first_shape(matmul, view);
  shape.a = stored_matrix(view[Matmul::kA]);
  shape.b = stored_matrix(view[Matmul::kB]);
  shape.transpose_a = matmul.transpose_a;
  shape.transpose_b = matmul.transpose_b;
  shape.alpha = matmul.alpha;
  if (!matmul.augmented) return shape;
  shape.addend = shape.c;
  shape.beta = 1.0F;
  return shape;
}

ProductShape low_shape(const Matmul& matmul, const OperationView& view) {
  ProductShape shape = first_shape(matmul, view);
  shape.a = stored_matrix(view[Matmul::kLowA]);
  shape.b = stored_matrix(view[Matmul::kLowB]);
  shape.transpose_b = matmul.low_transpose_b;
  shape.alpha = matmul.low_alpha;
  return shape;
}

ProductAlgorithm algorithm_of(const ProductShape& shape) {
  return is_thin_product(shape) ? ProductAlgorithm::timed : ProductAlgorithm::library;
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

// cuBLASLt adds one product per call, and so do Snug's own kernels.
Matmul decide(const Matmul& matmul, const OperationView& view, const Card&) {
  Matmul decided = matmul;
  decided.products.count = matmul.augmented ? 2 : 1;
  const bool few = has_few_rows(matmul, view);
  decided.choice.main.algorithm = few ? few_rows_algorithm(view[Matmul::kA], view[Matmul::kB])
                                      : algorithm_of(main_shape(matmul, view));
  if (matmul.augmented)
    decided.products.low = few ? few_rows_algorithm(view[Matmul::kLowA], view[Matmul::kLowB])
                               : algorithm_of(low_shape(matmul, view));
  return decided;
}

int64_t workspace_bytes(const Matmul& matmul, const OperationView& view, const Card& card) {
  if (is_of_few_rows(matmul.choice.main.algorithm)) return 0;
  return product_bytes(matmul, view) + card.product_workspace_bytes;
}

bool by_library(const Matmul& matmul, const OperationView&) {
  return !is_of_few_rows(matmul.choice.main.algorithm);
}

// A separate kernel adds a stochastically rounded product.
int32_t launches(const Matmul& matmul, const OperationView& view, const Card& card) {
  const int32_t of_sum = matmul.stochastic ? 1 : 0;
  if (is_of_few_rows(matmul.choice.main.algorithm)) return matmul.products.count + of_sum;
  const auto most = [&](const ProductShape& shape) {
    return most_launches(shape, card.multiprocessors, card.product_workspace_bytes);
  };
  const int32_t of_low = matmul.augmented ? most(low_shape(matmul, view)) : 0;
  return most(main_shape(matmul, view)) + of_low + of_sum;
}

}  // namespace

SNUG_CARD_NEEDS(Matmul, .supports = supports, .decide = decide, .workspace_bytes = workspace_bytes,
                .by_library = by_library, .launches = launches,
                .launched_together = few_rows_together);

}  // namespace snug::backends::cuda
