// A bf16 matrix product of which one dimension is a few dozen, such as those of low-rank adapters:
// bound by memory, which the library's blocks for wide matrices do not reach.
//
//   k thin            c (m, n) is written in one go from a and b packed once
//   n thin, a stored  c = sum over blocks of a's stored rows; sums of the blocks are kept in
//     transposed      scratch and added in their order
//   n thin, a stored  c = a times b packed once; a is read where it lies, some rows at a time
//     in rows
//   m thin            the transpose of these
//
// Which thread does what does not change a bit. Matrices may have gaps between their rows.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Whether the product has such a form and is faster this way on this machine.
bool is_thin_product(const MatmulSpec& spec, const CpuContext& context);

// Packed factors, sums and blocks for every thread; all pieces are whole cache lines.
int64_t thin_scratch_bytes(const MatmulSpec& spec, const CpuContext& context);

// Requires is_thin_product. An addend of c's type and strides may be c's very bytes. Scratch is
// aligned to 64 bytes.
void multiply_thin(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
                   const CpuContext& context);

}  // namespace snug::backends::cpu
