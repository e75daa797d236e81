// Chooses the kernel that multiplies the rows of experts.
#pragma once

#include "backends/cuda/needs/card.h"
#include "program/ir/program.h"
#include "program/kinds/product/grouped_matmul.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

// The tensor core kernel where the GPU has it and both factors can be read as vectors of 16-bit
// elements; else the plain one, which takes any operands.
program::ProductAlgorithm grouped_algorithm(const program::Tensor& a, const program::Tensor& b,
                                            const Card& card);

// b as kernels read it: that of the operation, or the values of matrices that are stored as NF4.
program::Tensor grouped_factor(const program::GroupedMatmul& grouped,
                               const program::OperationView& view);
const program::Tensor& grouped_factor(const program::GroupedMatmulGrad& grad,
                                      const program::OperationView& view);

// How many experts' matrices are dequantised at a time, into the workspace.
int64_t experts_at_once(const program::OperationView& view);

}  // namespace snug::backends::cuda
