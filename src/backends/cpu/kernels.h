// Vector kernels of the CPU backend: leaves without threads, allocation or errors, each over one
// block of rows or elements. Every file under kernels/ is compiled once for each instruction set
// (x86-64-v2, v3 = AVX2, v4 = AVX-512, v4 with AVX512_BF16, and that with AMX) with SNUG_ISA naming
// the namespace; the set is chosen at run time. Kernel files include nothing but their own headers
// and <cstdint>: inline library code compiled for one instruction set must not leak into the
// others.
//
// A group of kernels is a struct of function pointers in kernels/<group>.h, filled in
// kernels/<group>.cpp and named here and in kernels/table.cpp.
#pragma once

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/few_rows.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/nf4.h"
#include "backends/cpu/kernels/online_softmax.h"
#include "backends/cpu/kernels/optimizer.h"
#include "backends/cpu/kernels/optimizer_8bit.h"
#include "backends/cpu/kernels/rms_norm.h"
#include "backends/cpu/kernels/rope.h"
#include "backends/cpu/kernels/silu_mul.h"
#include "backends/cpu/kernels/softmax.h"
#include "backends/cpu/kernels/thin_product.h"
#include "backends/cpu/kernels/wide_product.h"

namespace snug::backends::cpu {

struct Kernels {
  const AttentionFewKernels* attention_few;
  const AttentionGradKernels* attention_grad;
  const AttentionTileKernels* attention_tile;
  const ElementwiseKernels* elementwise;
  const FewRowsKernels* few_rows;
  const GemmKernels* gemm;
  const Nf4Kernels* nf4;
  const OnlineSoftmaxKernels* online_softmax;
  const OptimizerKernels* optimizer;
  const Optimizer8bitKernels* optimizer_8bit;
  const RmsNormKernels* rms_norm;
  const RopeKernels* rope;
  const SiluMulKernels* silu_mul;
  const SoftmaxKernels* softmax;
  const ThinKernels* thin_product;
  const WideKernels* wide_product;
};

// One table an instruction set, defined in kernels/table.cpp.
namespace isa_v2 {
extern const Kernels kKernels;
}
namespace isa_v3 {
extern const Kernels kKernels;
}
namespace isa_v4 {
extern const Kernels kKernels;
}
namespace isa_v4_bf16 {
extern const Kernels kKernels;
}
namespace isa_amx {
extern const Kernels kKernels;
}

}  // namespace snug::backends::cpu
