// Which operations of a layer one launch does together in decoding, where rows are few, and the
// number of launches per layer matters as well as its bytes.
#pragma once

#include <cstddef>

#include "program/ir/program.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::backends::cuda {

// The number of consecutive operations, starting with `first`, that one launch of products does
// (few_rows_matrix.h):
//
//   [rms_norm] [matmul or matmul_nf4 [add_bias]] ... [silu_mul]
//   [rms_norm] [matmul or matmul_nf4 [add_bias]] ... [rope] ... [cache_write] ...
//
// that is, a norm whose output all products read, up to three products that read the same rows,
// each with its bias, and their gated activation if there are exactly two, or rotations of their
// outputs and their writes to a cache. Products must already be decided to use tensor cores. At
// least 1: an operation that runs by itself.
size_t few_rows_together(const program::Program& program, size_t first);

// The kernel for few rows that computes y = x weight^T: the one on tensor cores where both can be
// read as vectors of 16-bit elements, for at most kMostFewRows rows (few_rows_ring.h); else the
// plain one, for at most kFewRows.
program::ProductAlgorithm few_rows_algorithm(const program::Tensor& x,
                                             const program::Tensor& weight);
// The kernel for few rows that computes a product with a weight stored as NF4 codes.
program::ProductAlgorithm few_rows_nf4_algorithm(const program::Tensor& x,
                                                 const program::Tensor& codes);
constexpr bool is_of_few_rows(program::ProductAlgorithm algorithm) {
  return algorithm == program::ProductAlgorithm::few_rows ||
         algorithm == program::ProductAlgorithm::few_rows_tensor_cores;
}
// Whether a kernel for few rows computes so many with this one, with a weight stored as codes or
// not.
bool are_few_rows(int64_t rows, program::ProductAlgorithm algorithm, bool has_codes = false);
// Whether the algorithm can compute it; the plain kernel takes any operands.
inline bool allows_few_rows(program::ProductAlgorithm algorithm, const program::Tensor& x,
                            const program::Tensor& weight) {
  return are_few_rows(x.shape.rows(), algorithm) &&
         (algorithm == program::ProductAlgorithm::few_rows ||
          algorithm == few_rows_algorithm(x, weight));
}

// How many rotations and cache writes share a launch: [rope] ... [cache_write] ..., if there is at
// least one write.
size_t rotations_together(const program::Program& program, size_t first);

}  // namespace snug::backends::cuda
