// Which products Snug's own kernel for thin products can compute (kernels/thin_product.h): those of
// adapters, whose smaller factor has at most 64 rows or columns. It is one of the algorithms that
// are timed (tune_product.h), and used where it is the fastest.
#pragma once

#include <optional>

#include "backends/cuda/product/kernels/thin_product.h"
#include "backends/cuda/product/product.h"

namespace snug::backends::cuda {

// The run without its addresses, if the kernel can compute this product: both factors are bf16 with
// rows at multiples of 16 bytes, and it is
//   (m, k) (k, n) or (m, k) (n, k)^T   with n at most 64: x A^T, dy B
//   (k, m)^T (k, n)                    with m or n at most 64: the gradients of A and B
std::optional<ThinRun> thin_form(const ProductShape& shape);

// The kernel's name in stored choices. It has a version, which changes when the order of the
// kernel's sums, and so their bits, change.
inline constexpr const char* kThinName = "own thin 1";

// The run with its addresses, and with the sum cut into parts for this many multiprocessors and a
// workspace of this many bytes.
ThinRun thin_run(const ThinRun& form, const Product::Addresses& addresses, void* workspace,
                 int64_t multiprocessors, int64_t bytes);

}  // namespace snug::backends::cuda
