// Which products the own kernel for thin ones makes (kernels/thin_product.h): those of adapters,
// whose smaller factor has at most 64 rows or columns. It is one of the algorithms that are timed
// (tune_product.h), and taken where it is the fastest.
#pragma once

#include <optional>

#include "backends/cuda/product/kernels/thin_product.h"
#include "backends/cuda/product/product.h"

namespace snug::backends::cuda {

// The run without its addresses, where the kernel makes this product: both factors bf16, rows of
// both at multiples of 16 bytes, and
//   (m, k) (k, n) or (m, k) (n, k)^T   with n at most 64: x A^T, dy B
//   (k, m)^T (k, n)                    with m or n at most 64: the gradients of A and B
std::optional<ThinRun> thin_form(const ProductShape& shape);

// How far its bits are the same: another number where the order of its sums is another.
inline constexpr const char* kThinName = "own thin 1";

// The run with addresses, and the sum cut into parts for so many multiprocessors in a workspace of
// so many bytes.
ThinRun thin_run(const ThinRun& form, const Product::Addresses& addresses, void* workspace,
                 int64_t multiprocessors, int64_t bytes);

}  // namespace snug::backends::cuda
