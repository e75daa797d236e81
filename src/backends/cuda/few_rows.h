// Products of a few rows (decoding): from operands to the kernels that suit them.
#pragma once

#include "backends/cuda/context.h"
#include "backends/cuda/kernels/nf4.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {

// y = alpha x weight^T (+ addend), at most kFewRows rows.
struct FewRowsProduct {
  Matrix x, weight;
  Operand addend;  // data == nullptr without one
  Matrix y;
  float alpha = 1.0F;
};
void multiply_few_rows(const FewRowsProduct& product, CudaContext& context);

// y = x weight^T.
struct FewRowsNf4Product {
  Matrix x;
  StoredNf4 weight;
  Matrix y;
};
void multiply_few_rows(const FewRowsNf4Product& product, CudaContext& context);

}  // namespace snug::backends::cuda
