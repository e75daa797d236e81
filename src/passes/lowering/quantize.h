// quantize: stores frozen weights as NF4, and dequantises each one just before the operation that
// reads it, so that only one linear's values are alive at a time, in the forward and in the
// backward pass.
//
//   before   %y = matmul(%x, %w) {transpose_b}
//            %d.x = matmul(%d.y, %w)
//   after    %y = matmul_nf4(%x, %w, %w.absmax)      %w now holds codes
//            %w.values.1 = dequantize_nf4(%w, %w.absmax)
//            %d.x = matmul(%d.y, %w.values.1)
//
// Norms of a weight's rows (row_norms) are likewise computed from its dequantised values.
//
// Matrices of experts that the options name are stored too. Products by expert read them as they
// are, in the backward pass as well, and backends dequantise them a few experts at a time:
//
//   before   %y = grouped_matmul(%x, %w, %bounds) {transpose_b}
//   after    %y = grouped_matmul(%x, %w, %w.absmax, %bounds) {transpose_b, stored}
//
// A weight (in, out), which the forward pass reads without transpose_b, is stored as its transpose,
// as in bitsandbytes, and products read the transpose.
//
// It runs after schedule, which need not know of it: dequantisation depends on no result of another
// operation. lower splits matmul_nf4 into dequantize_nf4 and matmul where the target has no such
// product.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace snug::passes {

struct QuantizeOptions {
  bool nested = true;                  // with double quantisation
  std::vector<std::string> kept;       // weights of linears that are not quantised
  std::string head{};                  // the head's weight if it is quantised too; else empty
  std::vector<std::string> experts{};  // matrices of experts that are quantised too
};

// Whether a weight is stored as NF4: a matrix of a layer that is not in `kept`, or the head or
// matrices of experts that the options name. Embeddings and norms are excluded, since they belong
// to no layer or are not matrices.
bool is_quantized(const program::Tensor& tensor, const QuantizeOptions& options);

// Requires that no weight for which is_quantized holds is trainable. Only matmuls may read such a
// weight, as their second factor, and norms of its rows; operations that read the head get its
// dequantised values.
program::Program quantize(const program::Program& program, const QuantizeOptions& options);

// Names of the tensors stored next to the codes; the codes keep the weight's own name.
std::string absmax_name(const std::string& weight);
std::string nested_absmax_name(const std::string& weight);
std::string nested_map_name(const std::string& weight);
std::string nested_offset_name(const std::string& weight);

}  // namespace snug::passes
