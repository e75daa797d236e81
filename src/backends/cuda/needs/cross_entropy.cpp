#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

SNUG_CARD_NEEDS(CrossEntropy);
SNUG_CARD_NEEDS(CrossEntropyGrad);

}  // namespace snug::backends::cuda
