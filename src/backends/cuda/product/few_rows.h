// Products of a few rows (decoding): selects the kernels for the operands, for single operations or
// for several operations of a layer in one launch (backends/cuda/product/few_rows_needs.h).
#pragma once

#include <span>

#include "backends/cuda/device/context.h"
#include "backends/cuda/product/kernels/nf4.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

using program::ProductAlgorithm;

// y = alpha x weight^T (+ addend), of as many rows as the algorithm takes.
struct FewRowsProduct {
  Matrix x, weight;
  DeviceRows addend;  // data is null if there is none
  Matrix y;
  float alpha = 1.0F;
  bool weight_is_constant = false;
};
// Multiplies with one of the algorithms for few rows, for which the operands must be suitable.
// Returns the algorithm that was used, for traces.
ProductAlgorithm multiply_few_rows(const FewRowsProduct& product, ProductAlgorithm algorithm,
                                   CudaContext& context);

// y = x weight^T (+ addend).
struct FewRowsNf4Product {
  Matrix x;
  Nf4Weight weight;
  DeviceRows addend;  // data is null if there is none
  Matrix y;
  bool weight_is_constant = false;
};

// The product that an operation describes.
FewRowsProduct product_of(const program::Matmul& matmul, const Invocation& invocation);
FewRowsNf4Product product_of(const program::MatmulNf4& matmul, const Invocation& invocation);
ProductAlgorithm multiply_few_rows(const FewRowsNf4Product& product, ProductAlgorithm algorithm,
                                   CudaContext& context);

// The weight of an operation whose weight is stored as NF4.
template <typename Attributes>
Nf4Weight nf4_weight(const Attributes& attributes, const Invocation& invocation);

// Run joined operations: those that few_rows_together joins, and the rotations and cache writes
// that rotations_together joins.
void run_few_rows_together(std::span<const Invocation> list, CudaContext& context);
void run_rotations_together(std::span<const Invocation> list, CudaContext& context);

}  // namespace snug::backends::cuda
