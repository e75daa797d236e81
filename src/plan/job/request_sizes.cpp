#include "plan/job/request_sizes.h"

#include <algorithm>

#include "plan/job/assembly.h"

namespace snug::plan {
namespace {

int64_t in_chunk_steps(int64_t tokens) {
  return (tokens + kMinPrefillTokens - 1) / kMinPrefillTokens * kMinPrefillTokens;
}

}  // namespace

InferenceShape shape_of(const RequestSizes& sizes, const models::ModelConfig& model) {
  InferenceShape shape;
  shape.sequences = sizes.sequences;
  shape.prefill_tokens = std::min(kPrefillTokens, in_chunk_steps(sizes.entering_tokens));
  shape.capacity = sizes.request_tokens;
  add_small_sizes(shape);
  if (!model.has_encoder()) return shape;
  // An encoder reads the whole prompt, and the decoder begins with a single token, unless it reads
  // the prompt too.
  shape.capacity = {sizes.answer_tokens, sizes.prompt_tokens};
  shape.encoder_tokens = std::max(in_chunk_steps(sizes.prompt_tokens), shape.prefill_tokens);
  shape.prefill_tokens =
      model.repeats_prompt
          ? std::min(kPrefillTokens, in_chunk_steps(sizes.entering_tokens + sizes.sequences))
          : in_chunk_steps(sizes.sequences);
  return shape;
}

}  // namespace snug::plan
