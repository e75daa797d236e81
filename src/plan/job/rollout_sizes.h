// How many answers a job that learns from rewards makes, and how it learns from them.
#pragma once

#include <cstdint>

namespace snug::plan {

// Answers are made in generations: all of one by the same weights. Each update then learns from a
// slice of them, slice after slice, `iterations` times. A data row is a prompt.
struct RolloutSizes {
  int64_t group = 1;           // answers to a prompt
  int64_t answers = 1;         // of a generation, on all ranks: whole groups
  int64_t update_answers = 1;  // of an update: `answers` has whole slices of them
  int64_t ranks = 1;           // each makes as many of the answers, and learns from as many
  int64_t iterations = 1;
  int64_t micro_answers = 1;      // over which loss_type=bnpo takes a mean
  int64_t prompt_tokens = 1;      // of the longest prompt
  int64_t completion_tokens = 1;  // of the longest answer
  int64_t resamples = 0;          // how often a generation replaces groups that are rewarded alike
  // Where ranks have parts of the weights: these are gathered once for a generation and stay whole
  // as long as its answers are made, or they are gathered in each program.
  bool gathers_once = true;

  int64_t prompts() const { return answers / group; }
  int64_t slices() const { return answers / update_answers; }
  int64_t rank_answers() const { return answers / ranks; }
  int64_t rank_update_answers() const { return update_answers / ranks; }
  int64_t updates() const { return slices() * iterations; }  // of a generation
  int64_t sequence_tokens() const { return prompt_tokens + completion_tokens; }

  // What the host of a rank keeps of a generation: of each token its id, log-probability and
  // entropy, as the engine gives them and as they are learned from, and its text; and all of it as
  // text, where ranks tell one another or a checkpoint holds it.
  int64_t host_bytes() const {
    constexpr int64_t kBytesOfToken = 40;
    constexpr int64_t kBytesOfTextToken = 128;
    const bool becomes_text = ranks > 1 || updates() > 1;
    return answers * completion_tokens * (kBytesOfToken + (becomes_text ? kBytesOfTextToken : 0));
  }

  bool operator==(const RolloutSizes&) const = default;
};

}  // namespace snug::plan
