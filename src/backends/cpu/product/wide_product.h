// A bf16 matrix product on AMX tiles where no dimension is thin: what linears and the head spend
// their time in.
//
//   for each part of b's columns and group of a's rows   by one thread, which packs the part and
//     for each panel of a's rows                         keeps it in its second-level cache
//
// The next panel of rows is fetched while one is multiplied. Every element of c is summed over all
// of k in one order, whatever the parts and whichever thread makes them; only sums in fp32 with a
// transposed a may go through c in steps of k (MatmulSpec::step), where the rows of a are copied
// first, by all threads. Matrices may have gaps between their rows. A low-rank product that is
// added is a few more steps of k: its factors are packed after the others.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Whether the product runs this way on this machine.
bool is_wide_product(const MatmulSpec& spec, const CpuContext& context);

// Whether it takes the low-rank product that is added: a as it lies, and an alpha that is, over the
// other's, a power of two, so that scaling its b keeps every bit.
bool wide_takes_low_rank(const MatmulSpec& spec);

// The step with which fp32 sums with a transposed a are fastest; 0: all of k.
int64_t wide_step(const MatmulSpec& spec);

// The scratch holds, for every thread, a part of b, and sums where k comes in steps; and rows of a
// where it cannot be read as it lies.
int64_t wide_scratch_bytes(const MatmulSpec& spec, const CpuContext& context);

// Requires is_wide_product. An addend of c's type and strides may be c's very bytes. Scratch is
// aligned to 64 bytes. Returns the step of k through c, for traces.
int64_t multiply_wide(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
                      const CpuContext& context);

}  // namespace snug::backends::cpu
