#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

SNUG_CARD_NEEDS(Transfer);
SNUG_CARD_NEEDS(Await);
SNUG_CARD_NEEDS(Copy);

}  // namespace snug::backends::cuda
