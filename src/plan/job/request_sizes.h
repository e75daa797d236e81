// From the sizes of requests to those of the programs that answer them. Pure function.
#pragma once

#include <cstdint>

#include "models/config/config.h"
#include "plan/job/inference_shape.h"

namespace snug::plan {

struct RequestSizes {
  int64_t sequences = 1;        // requests that run side by side
  int64_t prompt_tokens = 1;    // of the longest prompt
  int64_t entering_tokens = 1;  // of all prompts that enter together
  int64_t answer_tokens = 1;    // of the longest answer, with what an encoder-decoder repeats
  int64_t request_tokens = 1;   // of the longest prompt with its answer, without the last token
};

// Programs that hold these, with programs of their own for fewer sequences and tokens.
InferenceShape shape_of(const RequestSizes& sizes, const models::ModelConfig& model);

}  // namespace snug::plan
