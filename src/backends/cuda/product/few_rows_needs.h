// Which operations of a layer one launch does together while decoding, where rows are few. How many
// launches a layer takes counts next to its bytes there.
#pragma once

#include <cstddef>

#include "program/ir/program.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

// Neighbours of the list, from `first` on, that a launch of products does (few_rows_matrix.h):
//
//   [rms_norm] [matmul or matmul_nf4] ... [silu_mul]
//
// a norm whose output all products read, up to three products that read the same rows, and the
// gated activation of two. Products are decided before: those on tensor cores. At least 1: an
// operation that runs by itself.
size_t few_rows_together(const program::Program& program, size_t first);

// Which kernel for few rows computes y = x weight^T: that on tensor cores where both can be read in
// vectors of elements of 16 bits.
program::ProductAlgorithm few_rows_algorithm(const program::Tensor& x,
                                             const program::Tensor& weight);
// Which kernel for few rows computes a product with a weight stored as NF4 codes.
program::ProductAlgorithm few_rows_nf4_algorithm(const program::Tensor& x,
                                                 const program::Tensor& codes);
constexpr bool is_of_few_rows(program::ProductAlgorithm algorithm) {
  return algorithm == program::ProductAlgorithm::few_rows ||
         algorithm == program::ProductAlgorithm::few_rows_tensor_cores;
}
// Whether that algorithm computes it; the plain kernel takes any operands.
inline bool allows_few_rows(program::ProductAlgorithm algorithm, const program::Tensor& x,
                            const program::Tensor& weight) {
  return algorithm == program::ProductAlgorithm::few_rows ||
         algorithm == few_rows_algorithm(x, weight);
}

// How many rotations and writes to the cache share a launch: [rope] ... [cache_write] ..., if there
// is a write among them.
size_t rotations_together(const program::Program& program, size_t first);

}  // namespace snug::backends::cuda
