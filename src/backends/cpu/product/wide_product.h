// A bf16 matrix product on AMX tiles without a thin dimension: linears and the head spend most of
// their time in such products.
//
//   for each part of b's columns and group of a's rows   one thread packs the part and keeps it in
//                                                        its second-level cache
//     for each panel of a's rows                         multiplies it with the part
//
// The next panel of rows is prefetched while one is multiplied. Every element of c is summed over
// all of k in the same order, whatever the parts and the threads. Only fp32 sums with a transposed
// a may go through c in steps of k (MatmulSpec::step); there all threads first copy the rows of a.
// Matrices may have gaps between their rows. A low-rank product that is added takes a few more
// steps of k: its factors are packed after the others.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Whether the product runs this way on this machine.
bool is_wide_product(const MatmulSpec& spec, const CpuContext& context);

// Whether it can include the low-rank product that is added: that product's a must be readable in
// place, and the quotient of the two alphas must be a power of two, so that scaling its b is exact.
bool wide_takes_low_rank(const MatmulSpec& spec);

// The step with which fp32 sums with a transposed a are fastest; 0: all of k.
int64_t wide_step(const MatmulSpec& spec);

// The scratch holds, for every thread, a part of b, and sums where k comes in steps; and rows of a
// where it cannot be read in place.
int64_t wide_scratch_bytes(const MatmulSpec& spec, const CpuContext& context);

// Requires is_wide_product. The addend may be c itself if it has c's type and strides. Scratch is
// aligned to 64 bytes. `past_caches`: c is read so much later that fp32 sums without an addend are
// written past the caches, which does not read their lines first. Returns the step of k through c,
// for traces.
int64_t multiply_wide(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
                      const CpuContext& context, bool past_caches = false);

}  // namespace snug::backends::cpu
