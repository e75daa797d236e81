#include "plan/job/generating_programs.h"

#include <string_view>

#include "base/error.h"
#include "models/forward/forward.h"
#include "program/ir/tensor_names.h"

namespace snug::plan {
namespace {

using program::Program;
using program::ProgramName;
using program::Tensor;

// A program that generates: `tokens` of each stream, for at most `segments` sequences.
struct GeneratingForward {
  program::ProgramKey key;
  base::PerStream<int64_t> tokens = 0;
  int64_t segments = 0;
  int64_t outputs = 0;  // rows of logits
};

std::vector<GeneratingForward> generating_forwards(const InferenceShape& shape, bool has_encoder) {
  const auto prefill = [&](const program::ProgramKey& key, int64_t tokens) {
    return GeneratingForward{key, tokens, shape.sequences,
                             shape.all_logits ? tokens : shape.sequences};
  };
  std::vector<GeneratingForward> forwards{prefill(ProgramName::prefill, shape.prefill_tokens)};
  if (has_encoder) forwards.front().tokens = {shape.prefill_tokens, shape.encoder_tokens};
  for (const int32_t size : small_prefills(shape))
    forwards.push_back(prefill({ProgramName::prefill, size}, size));
  if (shape.all_logits) return forwards;
  for (const int32_t size : small_decodes(shape))
    forwards.push_back({{ProgramName::decode, size}, size, size, size});
  const int64_t rows = decode_rows(shape);
  forwards.push_back({ProgramName::decode, rows, rows, rows});
  return forwards;
}

std::vector<Tensor> results_for_host(const Program& program, const program::ProgramKey& key,
                                     const InferenceShape& shape) {
  std::vector<std::string_view> names{program::kLogitsName};
  if (shape.candidates > 0) names = {program::kLikeliestLogitsName, program::kLikeliestIdsName};
  std::vector<Tensor> results;
  results.reserve(names.size());
  for (const std::string_view name : names)
    results.push_back(program.tensor(program.find(own_name(key, name))));
  return results;
}

}  // namespace

std::vector<GeneratingProgram> generating_programs(const models::Stack& stack,
                                                   const InferenceShape& shape,
                                                   program::DType compute) {
  if (shape.guessed_tokens > 0 && stack.has_states())
    base::throw_user_error(
        "prompt_lookup_num_tokens does not go with this model: a wrong guess would have to be "
        "taken "
        "back from the states of its recurrent layers, which keep no earlier ones; leave the key "
        "out");
  const models::CacheOptions cache{key_pools(shape, stack), shape.page_tokens,
                                   shape.quantized_cache, shape.capacity, shape.sequences};
  std::vector<GeneratingProgram> programs;
  for (const GeneratingForward& each : generating_forwards(shape, stack.encoder.has_value())) {
    Program program = models::forward(stack, {.program = each.key,
                                              .own_inputs = true,
                                              .compute = compute,
                                              .tokens = each.tokens,
                                              .segments = each.segments,
                                              .sequence_tokens = shape.capacity.decoder(),
                                              .head = models::Head::logits,
                                              .outputs = each.outputs,
                                              .candidates = shape.candidates,
                                              .cache = cache});
    std::vector<Tensor> results = results_for_host(program, each.key, shape);
    programs.push_back({std::move(program), std::move(results)});
  }
  return programs;
}

}  // namespace snug::plan
