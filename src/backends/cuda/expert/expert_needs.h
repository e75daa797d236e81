// Chooses the kernel that multiplies the rows of experts.
#pragma once

#include "backends/cuda/needs/card.h"
#include "program/ir/program.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

// The tensor core kernel where the GPU has it and both factors can be read as vectors of 16-bit
// elements; else the plain one, which takes any operands.
program::ProductAlgorithm grouped_algorithm(const program::Tensor& a, const program::Tensor& b,
                                            const Card& card);

}  // namespace snug::backends::cuda
