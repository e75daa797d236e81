// Which products cuBLASLt computes, and the scratch around them.
#pragma once

#include <cstdint>

#include "backends/cuda/product/product_shape.h"
#include "program/ir/program.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

// Whether the library can multiply these types.
bool supports_product(base::DType a, base::DType b, base::DType c);

// For decoding: y (+)= x W^T with few rows, which is bound by reading W once. Snug's own kernel
// computes it, after an adapter's product.
bool has_few_rows(const program::Matmul& matmul, const program::OperationView& view);

// The cuBLASLt products: that of a and b, and the low-rank one, which comes before it.
ProductShape main_shape(const program::Matmul& matmul, const program::OperationView& view);
ProductShape low_shape(const program::Matmul& matmul, const program::OperationView& view);

// The algorithm on a GPU: the library, or (timed) the faster of the library and Snug's own kernel
// for thin products.
program::ProductAlgorithm algorithm_of(const ProductShape& shape);

// The size of a stochastically rounded product in f32, which precedes the library's scratch.
int64_t product_bytes(const program::Matmul& matmul, const program::OperationView& view);

}  // namespace snug::backends::cuda
