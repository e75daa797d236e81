// Products of a few rows with the transpose of a matrix, as in decoding. They have a kernel of
// Snug's own, since oneDNN first packs the matrix, which costs more than the product.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Whether there are few rows and many outputs, and both factors have one type and are contiguous
// along the inner dimension. The most rows depend on type and instruction set: for bf16 sixteen
// where instructions multiply pairs of bf16; with AMX tiles, which are faster for more rows, and
// for other types four.
bool is_few_rows(const MatmulSpec& spec, const CpuContext& context);
// Requires is_few_rows; needs no scratch. The addend may be the same memory as c.
void few_rows_product(const MatmulSpec& spec, const MatmulOperands& operands,
                      const CpuContext& context);

}  // namespace snug::backends::cpu
