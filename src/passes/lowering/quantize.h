// quantize: stores frozen weights as NF4 and makes each one's values just before the operation that
// reads them, so that one linear's values are alive at a time, forward and backward.
//
//   before   %y = matmul(%x, %w) {transpose_b}
//            %d.x = matmul(%d.y, %w)
//   after    %y = matmul_nf4(%x, %w, %w.absmax)      %w now holds codes
//            %w.values.1 = dequantize_nf4(%w, %w.absmax)
//            %d.x = matmul(%d.y, %w.values.1)
//
// Norms of a weight's rows (row_norms) are likewise those of its values.
//
// A weight (in, out), which the forward pass reads without transpose_b, is stored as its transpose,
// as bitsandbytes does, and products read that.
//
// Comes after schedule: a weight's values depend on nothing that moves. lower turns matmul_nf4 into
// its two halves where the target has no such product.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace snug::passes {

struct QuantizeOptions {
  bool nested = true;             // double quantised
  std::vector<std::string> kept;  // weights of linears that stay as they are
  std::string head{};             // the head's weight, where that is stored too; else empty
};

// Whether a weight is stored as NF4: a matrix of a layer that is not kept, or the head that the
// options name. Embeddings and norms belong to no layer or are no matrices.
bool is_quantized(const program::Tensor& tensor, const QuantizeOptions& options);

// Requires that nothing trains what is_quantized, and that only matmuls read it, as their second
// factor, and norms of its rows; what reads the head reads its values.
program::Program quantize(const program::Program& program, const QuantizeOptions& options);

// Names of what is stored next to the codes, which keep the weight's own name.
std::string absmax_name(const std::string& weight);
std::string nested_absmax_name(const std::string& weight);
std::string nested_map_name(const std::string& weight);
std::string nested_offset_name(const std::string& weight);

}  // namespace snug::passes
