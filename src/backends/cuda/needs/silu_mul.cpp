#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

SNUG_CARD_NEEDS(SiluMul);
SNUG_CARD_NEEDS(SiluMulGrad);

}  // namespace snug::backends::cuda
