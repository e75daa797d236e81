// Products of a few rows (decoding): from operands to the kernels that suit them, one by one or
// several operations of a layer in one launch (backends/cuda/product/few_rows_needs.h).
#pragma once

#include <span>

#include "backends/cuda/device/context.h"
#include "backends/cuda/product/kernels/nf4.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

using program::ProductAlgorithm;

// y = alpha x weight^T (+ addend), at most kFewRows rows.
struct FewRowsProduct {
  Matrix x, weight;
  DeviceRows addend;  // data == nullptr without one
  Matrix y;
  float alpha = 1.0F;
  bool weight_is_constant = false;
};
// Multiplies by one of the algorithms for few rows, whose operands must allow it. Returns what
// computed it, for traces.
ProductAlgorithm multiply_few_rows(const FewRowsProduct& product, ProductAlgorithm algorithm,
                                   CudaContext& context);

// y = x weight^T (+ addend).
struct FewRowsNf4Product {
  Matrix x;
  Nf4Weight weight;
  DeviceRows addend;  // data == nullptr without one
  Matrix y;
  bool weight_is_constant = false;
};

// The product of an operation.
FewRowsProduct product_of(const program::Matmul& matmul, const Invocation& invocation);
FewRowsNf4Product product_of(const program::MatmulNf4& matmul, const Invocation& invocation);
ProductAlgorithm multiply_few_rows(const FewRowsNf4Product& product, ProductAlgorithm algorithm,
                                   CudaContext& context);

// The weight of an operation that has one stored as NF4.
template <typename Attributes>
Nf4Weight nf4_weight(const Attributes& attributes, const Invocation& invocation);

// Operations that were joined: few_rows_together says which, and of rotations and writes to a cache
// rotations_together.
void run_few_rows_together(std::span<const Invocation> list, CudaContext& context);
void run_rotations_together(std::span<const Invocation> list, CudaContext& context);

}  // namespace snug::backends::cuda
