// The parts of cuDNN's binding that a test without a card asks for too.
#pragma once

#include <memory>
#include <string_view>

#include "backends/cuda/segment_attention.h"

namespace snug::backends::cuda {

// cuDNN for a card that is not here, described as the library's own device properties (JSON) and by
// its compute capability (90): its plans are made and sized, and cannot run. It needs a driver's
// library, if one that does nothing. Null where cuDNN is not found.
std::unique_ptr<Cudnn> open_cudnn_without_card(std::string_view properties, int compute_capability);

}  // namespace snug::backends::cuda
