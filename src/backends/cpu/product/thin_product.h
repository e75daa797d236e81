// A bf16 matrix product with one dimension of a few dozen, such as those of low-rank adapters. It
// is bound by memory bandwidth, which the library's blocking for wide matrices does not reach.
//
//   k thin            c (m, n) is written in one pass from a and the packed b
//   n thin, a stored  c = sum over blocks of a's stored rows; the sums of the blocks are kept in
//     transposed      scratch and added in order
//   n thin, a stored  c = a times the packed b; a is read in place, some rows at a time
//     in rows
//   m thin            the transpose of these
//
// The assignment of work to threads does not change a bit. Matrices may have gaps between their
// rows.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Whether the product has one of these forms and is faster this way on this machine.
bool is_thin_product(const MatmulSpec& spec, const CpuContext& context);

// Packed factors, sums, and blocks for every thread; each part is rounded up to whole cache lines.
int64_t thin_scratch_bytes(const MatmulSpec& spec, const CpuContext& context);

// Requires is_thin_product. The addend may be c itself if it has c's type and strides. Scratch is
// aligned to 64 bytes.
void multiply_thin(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
                   const CpuContext& context);

}  // namespace snug::backends::cpu
