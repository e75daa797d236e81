// Which kernel multiplies the rows of experts.
#pragma once

#include "backends/cuda/needs/card.h"
#include "program/ir/program.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

// The kernel on tensor cores where the card has them and both factors are read in vectors of
// elements of 16 bits, else the plain one, which takes any operands.
program::ProductAlgorithm grouped_algorithm(const program::Tensor& a, const program::Tensor& b,
                                            const Card& card);

}  // namespace snug::backends::cuda
