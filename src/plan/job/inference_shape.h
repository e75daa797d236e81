// The sizes of the programs that generate, and of the pools of pages that hold their keys and
// values.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/token_streams.h"
#include "models/blocks.h"
#include "models/forward/key_groups.h"

namespace snug::plan {

struct InferenceShape {
  int64_t sequences = 1;                  // generated in parallel
  base::PerStream<int64_t> capacity = 0;  // tokens per sequence, prompt and answer
  int64_t prefill_tokens = 0;             // the most prompt tokens that one prefill takes
  int64_t encoder_tokens = 0;             // capacity of whole prompts for an encoder in one prefill
  bool all_logits = false;       // for scoring: logits of every prefill token, not only of the last
  bool quantized_cache = false;  // keys and values have 8 bits, not those of the compute type
  int64_t candidates = 0;  // likeliest tokens of each row that go to the host; 0: all logits do
  // Numbers of rows, ascending, for which there are decode programs of their own, as far as they
  // are below decode_rows(): a step runs the smallest program that holds the tokens of all active
  // sequences.
  std::vector<int32_t> decode_sizes{};
  // Numbers of tokens, ascending, for which there are prefill programs of their own, as far as they
  // are below prefill_tokens. These programs run no encoder.
  std::vector<int32_t> prefill_sizes{};
  int32_t page_tokens = 64;  // of a page
  // How many tokens of a sequence a step of decode can verify next to the one that is known; at
  // most kMostGuessedTokens.
  int32_t guessed_tokens = 0;
  // Pages of the pools of each group of keys, in the order of models::key_groups. Empty: as many as
  // all sequences together can need.
  std::vector<int64_t> pages{};
};

// A sequence's tokens of one step are no more than the smallest chunk of a prompt.
inline constexpr int64_t kMostGuessedTokens = 15;

// The rows of the largest decode program: one for each token that a step appends.
constexpr int64_t decode_rows(const InferenceShape& shape) {
  return shape.sequences * (1 + shape.guessed_tokens);
}

// The sizes of prefill programs that are smaller than the largest one.
std::vector<int32_t> small_prefills(const InferenceShape& shape);
// Those of decode programs: none where every token has its logits.
std::vector<int32_t> small_decodes(const InferenceShape& shape);

// Adds sizes for runs that hold little of what there is room for: few programs, since each has to
// be planned and prepared.
void add_small_sizes(InferenceShape& shape);
// The same for a server, to which prompts of any length come one by one: rows of a program that
// have no token are computed in vain, and in programs of more than 128 rows these are less than
// half.
void add_served_sizes(InferenceShape& shape);

// Lets a step of decode verify so many guessed tokens of each sequence, with sizes of programs for
// these.
void allow_guesses(InferenceShape& shape, int64_t tokens);

// The most pages that one sequence holds in a group at any moment. A window gives back the pages
// that no later token sees, but while a chunk is read it needs all that the chunk's queries see,
// and the page at each end may hold a single token of them.
int64_t pages_of_sequence(const InferenceShape& shape, const models::KeyGroup& group);

// The pools of a stack that generates in this shape.
std::vector<models::KeyPool> key_pools(const InferenceShape& shape, const models::Stack& stack);

// The pages with which each group holds so many sequences of the shape's capacity, whatever their
// number is that runs at one time.
std::vector<int64_t> pages_of_sequences(const InferenceShape& shape, const models::Stack& stack,
                                        int64_t sequences);

// The bytes of a token's keys and values in all layers of a group, in this compute type or in 8
// bits with their scales.
int64_t token_bytes(const models::Stack& stack, const models::KeyGroup& group,
                    const InferenceShape& shape, base::DType compute);

}  // namespace snug::plan
