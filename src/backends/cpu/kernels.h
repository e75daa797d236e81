// Vector kernels of the CPU backend: leaf functions without threads, allocation or errors, each
// over one block of rows or elements. Every file under kernels/ is compiled once for each
// instruction set (x86-64-v2, v3 = AVX2, v4 = AVX-512, v4 with AVX512_BF16, and that with AMX),
// with SNUG_ISA as the name of its namespace; the instruction set is chosen at run time. Kernel
// files include only their own headers and <cstdint>: inline library code that is compiled for one
// instruction set must not leak into the others.
//
// A group of kernels is a struct of function pointers in kernels/<group>.h, with its values in the
// constant k<Struct> in kernels/<group>.cpp, and is listed here.
#pragma once

#include "backends/cpu/attention/kernels/attention.h"
#include "backends/cpu/attention/kernels/key_codes.h"
#include "backends/cpu/attention/kernels/online_softmax.h"
#include "backends/cpu/attention/kernels/rope.h"
#include "backends/cpu/attention/kernels/softmax.h"
#include "backends/cpu/elementwise/kernels/clamped_swiglu.h"
#include "backends/cpu/elementwise/kernels/elementwise.h"
#include "backends/cpu/elementwise/kernels/gated_mul.h"
#include "backends/cpu/norm/kernels/layer_norm.h"
#include "backends/cpu/norm/kernels/rms_norm.h"
#include "backends/cpu/norm/kernels/row_norms.h"
#include "backends/cpu/optimizer/kernels/adafactor.h"
#include "backends/cpu/optimizer/kernels/lion.h"
#include "backends/cpu/optimizer/kernels/muon.h"
#include "backends/cpu/optimizer/kernels/optimizer.h"
#include "backends/cpu/optimizer/kernels/optimizer_8bit.h"
#include "backends/cpu/product/kernels/column_scale.h"
#include "backends/cpu/product/kernels/few_rows.h"
#include "backends/cpu/product/kernels/gemm.h"
#include "backends/cpu/product/kernels/nf4.h"
#include "backends/cpu/product/kernels/nf4_tiles.h"
#include "backends/cpu/product/kernels/thin_product.h"
#include "backends/cpu/product/kernels/wide_product.h"
#include "backends/cpu/recurrence/kernels/causal_convolution.h"
#include "backends/cpu/recurrence/kernels/gated_delta_rule.h"

namespace snug::backends::cpu {

// Expands X(Struct, name) for each group.
#define SNUG_KERNEL_GROUPS(X)                     \
  X(AdafactorKernels, adafactor)                  \
  X(AttentionFewKernels, attention_few)           \
  X(AttentionGradKernels, attention_grad)         \
  X(AttentionTileKernels, attention_tile)         \
  X(CausalConvolutionKernels, causal_convolution) \
  X(ClampedSwigluKernels, clamped_swiglu)         \
  X(ColumnScaleKernels, column_scale)             \
  X(DeltaRuleKernels, delta_rule)                 \
  X(ElementwiseKernels, elementwise)              \
  X(FewRowsKernels, few_rows)                     \
  X(GatedMulKernels, gated_mul)                   \
  X(GemmKernels, gemm)                            \
  X(KeyCodesKernels, key_codes)                   \
  X(LayerNormKernels, layer_norm)                 \
  X(LionKernels, lion)                            \
  X(MuonKernels, muon)                            \
  X(Nf4Kernels, nf4)                              \
  X(Nf4TileKernels, nf4_tiles)                    \
  X(OnlineSoftmaxKernels, online_softmax)         \
  X(OptimizerKernels, optimizer)                  \
  X(Optimizer8bitKernels, optimizer_8bit)         \
  X(RmsNormKernels, rms_norm)                     \
  X(RopeKernels, rope)                            \
  X(RowNormsKernels, row_norms)                   \
  X(SoftmaxKernels, softmax)                      \
  X(ThinKernels, thin_product)                    \
  X(WideKernels, wide_product)

struct Kernels {
#define SNUG_GROUP(Struct, name) const Struct* name;
  SNUG_KERNEL_GROUPS(SNUG_GROUP)
#undef SNUG_GROUP
};

// One table per instruction set, defined in kernels/table.cpp.
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
