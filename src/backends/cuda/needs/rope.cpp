#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

SNUG_CARD_NEEDS(RotaryTable);
SNUG_CARD_NEEDS(Rope);

}  // namespace snug::backends::cuda
