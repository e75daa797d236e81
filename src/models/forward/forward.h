// From a stack of blocks (models/blocks.h) to its forward program: a token's id becomes a row of
// the embedding, every branch of every layer adds to it, and the final norm and the head end it.
#pragma once

#include <string>

#include "base/token_streams.h"
#include "models/blocks.h"
#include "program/ir/program.h"
#include "program/ir/program_name.h"

namespace snug::models {

// What stands at the end of the program.
enum class Head : uint8_t {
  loss,    // linear_cross_entropy: `losses` (tokens) and `loss` (1)
  logits,  // `logits` (outputs, vocab) f32 of the rows that `output_rows` names, and of each the
           // `candidates` likeliest: `likeliest.logits`, `likeliest.ids` (outputs, candidates)
};

struct ForwardOptions {
  program::ProgramKey program = program::ProgramName::micro_first;
  // Batch tensors and logits are named after the program, where programs of a job differ in shape.
  bool own_inputs = false;
  program::DType compute = program::DType::f32;  // of weights and activations
  // Capacity of each stream: rows of a micro-batch, flattened. Without tokens of an encoder's it
  // does not run, and what it made lies in caches.
  base::PerStream<int64_t> tokens = 0;
  int64_t segments = 0;  // capacity of the bounds
  // No segment of a stream is longer, and they ascend; 0: nothing is known.
  base::PerStream<int64_t> segment_tokens = 0;
  bool no_empty_segments = false;  // every segment has a token
  bool deterministic = true;       // the gradient of attention has the same bits on every run
  int64_t sequence_tokens = 0;  // the longest sequence there may be: longrope's factors follow it
  Head head = Head::loss;
  double router_loss = 0;  // the factor of the loss that balances experts; 0: there is none
  int64_t outputs = 0;     // rows of logits, for Head::logits
  int64_t candidates = 0;  // 0: none are looked for
  // Rows of the key and value caches of each stream; 0: no cache, keys are this batch's.
  base::PerStream<int64_t> cache_capacity = 0;
};

// Reads tensors named as the weights, and of lifetime step: `tokens` and, where the network asks
// for them, `positions` (tokens) i32, `query_bounds`, `key_bounds` (segments, 2) i32; for a loss
// `targets` (tokens) i32 and `inverse_tokens` (1) f32, and `inverse_document_tokens` (1) f32 where
// experts are balanced (program/kinds/expert/balance_loss.h), which gives `router_loss` (1); for
// logits `output_rows` (outputs) i32; with a cache `slots` (tokens) i32 and the caches
// `layers.N.key_cache`, `layers.N.value_cache` (capacity, kv_heads * head_dim).
// Without a cache, key_bounds is query_bounds. An encoder reads tensors of its own stream
// (program/ir/tensor_names.h); with caches its `slots` and `key_bounds` are of those of attention
// that reads it, `layers.N.cross_key_cache` and `layers.N.cross_value_cache`. Where a block has a
// prompt it also reads `prompt_query_bounds` and `prompt_key_bounds` (1, 2) i32 of lifetime run,
// which are [0, tokens) and [0, the prompt's vectors), and its vectors and gates, of role adapter
// (models/forward/prompt_names.h).
program::Program forward(const Stack& stack, const ForwardOptions& options);

}  // namespace snug::models
