// Makes the forward program of a stack of blocks (models/blocks.h): the embedding turns each token
// id into a row, every branch of every layer adds to that row, and the final norm and the head
// follow.
#pragma once

#include <string>
#include <vector>

#include "base/token_streams.h"
#include "models/blocks.h"
#include "models/forward/key_groups.h"
#include "program/ir/program.h"
#include "program/ir/program_name.h"

namespace snug::models {

// What the program ends in.
enum class Head : uint8_t {
  loss,  // linear_cross_entropy: `losses` (tokens) and `loss` (1)
  // `logits` (outputs, vocab) f32 of the rows that `output_rows` names; with `candidates`, the
  // likeliest of each row: `likeliest.logits`, `likeliest.ids` (outputs, candidates).
  logits,
};

// The caches of keys and values: pools of pages, which sequences have by a table; and the recurrent
// states, of which each sequence has one place.
struct CacheOptions {
  std::vector<KeyPool> pools{};           // of key_groups(stack); empty: there are no caches
  int32_t page_tokens = 0;                // of a page
  bool quantized = false;                 // keys and values have 8 bits, and scales
  base::PerStream<int64_t> capacity = 0;  // the most tokens of a sequence
  int64_t sequences = 0;                  // places for recurrent states
  bool is_kept() const { return sequences > 0; }
};

// The batch tensor that says where each segment's sequence keeps its states (segments, 2): a place,
// and how many tokens came before (program/kinds/recurrence/gated_delta_rule.h).
std::string state_slots_name();

// NEFTune's noise on the rows of the embedding (program/kinds/elementwise/noise.h).
struct EmbeddingNoise {
  double alpha = 0;  // 0: none
  int64_t seed = 0;
  int64_t rows = 1;  // of a micro-batch
};

struct ForwardOptions {
  program::ProgramKey program = program::ProgramName::micro_first;
  // Names batch tensors and logits after the program, for jobs whose programs differ in shape.
  bool own_inputs = false;
  program::DType compute = program::DType::f32;  // type of weights and activations
  // Capacity of each stream: the rows of a micro-batch, flattened. If the encoder's stream has no
  // tokens, the encoder does not run, and its keys and values are in caches.
  base::PerStream<int64_t> tokens = 0;
  int64_t segments = 0;  // capacity of the bounds
  // The length of the longest segment of a stream, whose segments are in ascending order; 0:
  // unknown.
  base::PerStream<int64_t> segment_tokens = 0;
  bool no_empty_segments = false;  // every segment has a token
  bool deterministic = true;       // the gradient of attention has the same bits in every run
  int64_t sequence_tokens = 0;  // the longest possible sequence, which selects longrope's factors
  Head head = Head::loss;
  double router_loss = 0;  // the factor of the loss that balances experts; 0: no such loss
  EmbeddingNoise noise{};
  int64_t outputs = 0;     // rows of logits, for Head::logits
  int64_t candidates = 0;  // the number of likeliest tokens to select; 0: none
  CacheOptions cache{};    // without caches, keys come from this batch only
};

// The program reads the weights by name, and these batch tensors of lifetime step: `tokens` and,
// where the network needs them, `positions` (tokens) i32; `query_bounds` and `key_bounds`
// (segments, 2) i32. A loss also reads `targets` (tokens) i32 and `inverse_tokens` (1) f32. Where
// experts are balanced (program/kinds/expert/balance_loss.h), it also reads
// `inverse_document_tokens` (1) f32 and writes `router_loss` (1); with noise it reads `random` (2)
// i32. Logits read `output_rows`
// (outputs) i32. An encoder reads tensors of its own stream (program/ir/tensor_names.h). Without
// caches, key_bounds is query_bounds. With caches, each group of keys has its own `slots` (tokens),
// `key_bounds` (segments, 2) and `pages` (segments, pages of a sequence) i32, named by group_name
// (models/forward/key_groups.h), and each layer the caches `layers.N.key_cache` and
// `layers.N.value_cache` (rows of the pages, kv_heads * head_dim), or `layers.N.cross_key_cache`
// and `layers.N.cross_value_cache` of what the encoder has written. A layer with a recurrent state
// reads state_slots_name() (segments, 2) i32, and has `layers.N.convolution_state` and
// `layers.N.delta_state`, with a row for each sequence. Where they have 8 bits, there
// are also `layers.N.key_scales` (kv_heads, rows of the pages) and so on. A block with a prompt
// reads the prompt's vectors and gates, of role adapter (models/forward/prompt_names.h), and
// `prompt_query_bounds` and `prompt_key_bounds` (1, 2) i32 of lifetime run, which are [0, tokens)
// and [0, vectors of the prompt).
program::Program forward(const Stack& stack, const ForwardOptions& options);

}  // namespace snug::models
