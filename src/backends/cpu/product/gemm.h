// A matrix product of Snug's own with fp32 sums, whose scratch the caller provides: for fp16
// factors, and for fp32 factors on x86-64-v2 and v3, where oneDNN packs into buffers of its own
// that no plan accounts for.
//
// c is cut into tiles of fixed size; one thread computes a tile over the whole of k in fixed steps,
// so the bits do not depend on the number of threads.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Whether products of factors of this type are computed here instead of by oneDNN.
bool is_gemm(base::DType type, const CpuContext& context);
// The packed blocks of all threads.
int64_t gemm_scratch_bytes(const MatmulSpec& spec, const CpuContext& context);
// Requires fp32 or fp16 factors; c and the addend must be fp32 or have the type of the factors. The
// addend may be the same memory as c.
void gemm(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
          const CpuContext& context);

}  // namespace snug::backends::cpu
