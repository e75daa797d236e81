#include "backends/cpu/kernels.h"

namespace snug::backends::cpu::SNUG_ISA {

extern const AttentionFewKernels kAttentionFewKernels;
extern const AttentionGradKernels kAttentionGradKernels;
extern const AttentionTileKernels kAttentionTileKernels;
extern const ElementwiseKernels kElementwiseKernels;
extern const FewRowsKernels kFewRowsKernels;
extern const GemmKernels kGemmKernels;
extern const Nf4Kernels kNf4Kernels;
extern const OnlineSoftmaxKernels kOnlineSoftmaxKernels;
extern const Optimizer8bitKernels kOptimizer8bitKernels;
extern const OptimizerKernels kOptimizerKernels;
extern const RmsNormKernels kRmsNormKernels;
extern const RopeKernels kRopeKernels;
extern const SiluMulKernels kSiluMulKernels;
extern const SoftmaxKernels kSoftmaxKernels;
extern const ThinKernels kThinKernels;
extern const WideKernels kWideKernels;

extern const Kernels kKernels;
const Kernels kKernels = {
    .attention_few = &kAttentionFewKernels,
    .attention_grad = &kAttentionGradKernels,
    .attention_tile = &kAttentionTileKernels,
    .elementwise = &kElementwiseKernels,
    .few_rows = &kFewRowsKernels,
    .gemm = &kGemmKernels,
    .nf4 = &kNf4Kernels,
    .online_softmax = &kOnlineSoftmaxKernels,
    .optimizer = &kOptimizerKernels,
    .optimizer_8bit = &kOptimizer8bitKernels,
    .rms_norm = &kRmsNormKernels,
    .rope = &kRopeKernels,
    .silu_mul = &kSiluMulKernels,
    .softmax = &kSoftmaxKernels,
    .thin_product = &kThinKernels,
    .wide_product = &kWideKernels,
};

}  // namespace snug::backends::cpu::SNUG_ISA
