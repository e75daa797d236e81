#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

SNUG_CARD_NEEDS(Embedding);
SNUG_CARD_NEEDS(EmbeddingGrad);

}  // namespace snug::backends::cuda
