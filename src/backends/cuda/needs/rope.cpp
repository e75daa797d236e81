#include "backends/cuda/needs/few_rows.h"
#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

SNUG_CARD_NEEDS(RotaryTable);
SNUG_CARD_NEEDS(Rope, .launched_together = rotations_together);

}  // namespace snug::backends::cuda
