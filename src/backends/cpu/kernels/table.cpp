#include "backends/cpu/kernels.h"

namespace snug::backends::cpu::SNUG_ISA {

extern const SoftmaxKernels kSoftmaxKernels;

extern const Kernels kKernels;
const Kernels kKernels = {
    .softmax = &kSoftmaxKernels,
};

}  // namespace snug::backends::cpu::SNUG_ISA
