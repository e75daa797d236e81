#include "backends/cpu/kernels.h"

namespace snug::backends::cpu::SNUG_ISA {

#define SNUG_GROUP(Struct, name) extern const Struct k##Struct;
SNUG_KERNEL_GROUPS(SNUG_GROUP)
#undef SNUG_GROUP

extern const Kernels kKernels;
const Kernels kKernels = {
#define SNUG_GROUP(Struct, name) .name = &k##Struct,
    SNUG_KERNEL_GROUPS(SNUG_GROUP)
#undef SNUG_GROUP
};

}  // namespace snug::backends::cpu::SNUG_ISA
