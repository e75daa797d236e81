// A matrix product of our own with fp32 sums, its scratch from the caller: of fp16 factors, and of
// fp32 ones on x86-64-v2 and v3, where oneDNN packs into buffers of its own that no plan sees.
//
// c is cut into tiles of fixed size; each is one thread's, over the whole of k in fixed steps, so
// bits do not depend on the number of threads.
#pragma once

#include "backends/cpu/context.h"
#include "backends/cpu/product/onednn_matmul.h"

namespace snug::backends::cpu {

// Whether products of factors of this type are made here and not by oneDNN.
bool is_gemm(base::DType type, const CpuContext& context);
// Packed blocks for every thread.
int64_t gemm_scratch_bytes(const MatmulSpec& spec, const CpuContext& context);
// Requires factors of fp32 or of fp16, c and the addend in fp32 or the type of the factors. The
// addend may share c's bytes element by element.
void gemm(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
          const CpuContext& context);

}  // namespace snug::backends::cpu
