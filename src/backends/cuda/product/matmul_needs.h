// Which products go to cuBLASLt, and what scratch they leave for themselves.
#pragma once

#include <cstdint>

#include "backends/cuda/product/product_shape.h"
#include "program/ir/program.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

// Whether the library multiplies these.
bool supports_product(base::DType a, base::DType b, base::DType c);

// Decoding: y (+)= x W^T of a few rows, bound by reading W once. An own kernel, which runs an
// adapter's product first.
bool has_few_rows(const program::Matmul& matmul, const program::OperationView& view);

// What cuBLASLt is asked for: the product of a and b, and that of low rank, which comes before it.
ProductShape main_shape(const program::Matmul& matmul, const program::OperationView& view);
ProductShape low_shape(const program::Matmul& matmul, const program::OperationView& view);

// What computes it on a card: the library, or the faster of that and the own kernel for thin
// products.
program::ProductAlgorithm algorithm_of(const ProductShape& shape);

// A stochastic sum leaves the product in f32 scratch, ahead of the library's own.
int64_t product_bytes(const program::Matmul& matmul, const program::OperationView& view);

}  // namespace snug::backends::cuda
