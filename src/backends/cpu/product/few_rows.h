// Products of a few rows with the transpose of a matrix, as decoding makes them: our own, since
// oneDNN packs the matrix first, which costs more than the product.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Few rows, both factors of one type with inner elements side by side, many outputs. How many are
// few depends on type and instruction set: of bf16 up to sixteen where instructions multiply pairs
// of it; on tiles, which multiply more rows faster, and of other types up to four.
bool is_few_rows(const MatmulSpec& spec, const CpuContext& context);
// Requires is_few_rows; takes no scratch. The addend may share c's bytes element by element.
void few_rows_product(const MatmulSpec& spec, const MatmulOperands& operands,
                      const CpuContext& context);

}  // namespace snug::backends::cpu
