// The host's side of a generating program: its batch tensors, and the results that it copies. Data
// only: engine/cached_forward.h says what is written where.
#pragma once

#include <cstdint>
#include <vector>

#include "base/token_streams.h"
#include "plan/job/inference_shape.h"
#include "program/ir/program_name.h"
#include "runtime/execution/executor.h"

namespace snug::engine {

// Of one group of keys.
struct GroupBatch {
  int32_t* slots = nullptr;       // (tokens)
  int32_t* key_bounds = nullptr;  // (segments, 2)
  int32_t* pages = nullptr;       // (segments, pages_of_segment)
  int64_t pages_of_segment = 0;
};

// Of one stream. A program that appends nothing to it has its groups' key_bounds and pages alone.
struct StreamBatch {
  int64_t tokens = 0;
  int32_t* ids = nullptr;            // (tokens)
  int32_t* positions = nullptr;      // (tokens); null where the network needs none
  int32_t* query_bounds = nullptr;   // (segments, 2)
  std::vector<GroupBatch> groups{};  // of the stream's keys, in the order of Job::key_pools
};

struct ForwardBatch {
  program::ProgramKey program = program::ProgramName::prefill;
  base::PerStream<StreamBatch> streams;
  int64_t segments = 0;             // the number of sequences that it holds
  int32_t* adapter_rows = nullptr;  // (decoder's tokens, slots); null where there are no slots
  int64_t slots = 0;                // of adapters
  int32_t* state_slots = nullptr;   // (segments, 2); null where no layer keeps a state
  int32_t* output_rows = nullptr;   // (outputs)
  int64_t outputs = 0;
  int64_t vocabulary = 0;
  const float* logits = nullptr;            // (outputs, vocab); null with candidates
  const float* likeliest_logits = nullptr;  // (outputs, candidates)
  const int32_t* likeliest_ids = nullptr;   // (outputs, candidates)

  // Makes every row padding: a token of no sequence, which is neither cached nor attended to.
  void reset() const;
  // Lets rows of the decoder have the adapter of a slot, or none.
  void set_slot(int64_t first_row, int64_t rows, int64_t slot) const;
};

// The batches of a shape's programs, each in ascending order of size.
struct ForwardBatches {
  std::vector<ForwardBatch> prefills;
  std::vector<ForwardBatch> decodes;  // empty where every token has its logits
};

// The executor's job must contain the programs of `shape`.
ForwardBatches open_batches(runtime::Executor& executor, const plan::InferenceShape& shape);

}  // namespace snug::engine
