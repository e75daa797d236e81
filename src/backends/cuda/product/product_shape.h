// Everything that a cuBLASLt product depends on, except addresses: the key under which its
// algorithm is stored.
#pragma once

#include <compare>
#include <cstdint>

#include "program/ir/tensor.h"

namespace snug::backends::cuda {

// A stored, row-major matrix.
struct StoredMatrix {
  base::DType dtype = base::DType::f32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;           // elements from one row to the next
  int64_t alignment_bytes = 0;  // alignment of its first element: a power of two, at most 256
  auto operator<=>(const StoredMatrix&) const = default;
};

// c (m, n) = alpha op(a) op(b) + beta addend. With transpose_a, a is stored as (k, m); with
// transpose_b, b as (n, k). The addend has c's element type, and may be c itself.
struct ProductShape {
  StoredMatrix a, b, addend, c;
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1.0F;
  float beta = 0.0F;
  auto operator<=>(const ProductShape&) const = default;
};

// The matrix of a tensor in an arena whose base is aligned to 256.
StoredMatrix stored_matrix(const program::Tensor& tensor);
// A matrix in scratch: without gaps, aligned to 256.
StoredMatrix dense_matrix(base::DType dtype, int64_t rows, int64_t columns);

// Whether Snug's own kernel for thin products (thin_product.h) can compute this one, and whether
// then the rows of its result are the thin dimension.
bool is_thin_product(const ProductShape& shape);
bool is_result_by_thin(const ProductShape& shape);

// The most kernel launches and library calls for this product, whichever algorithm is the fastest
// on a GPU with this many multiprocessors and with this much scratch: Snug's own kernel adds up the
// parts of a sum in a second launch.
int32_t most_launches(const ProductShape& shape, int64_t multiprocessors, int64_t workspace_bytes);

}  // namespace snug::backends::cuda
