#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

SNUG_CARD_NEEDS(Gelu);
SNUG_CARD_NEEDS(GeluGrad);

}  // namespace snug::backends::cuda
