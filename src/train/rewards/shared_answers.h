// Answers that the ranks of a run make together: each makes a part of them and is told of all, so
// that every rank learns from the same generation. Each rank knows what the others have, so that
// micro-batches, counts and weights need no further exchange.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cached_forward.h"
#include "runtime/process/job_ranks.h"
#include "train/rewards/generation.h"

namespace snug::train {

// Of `count` in order, those of a rank are [begin, end). Ranks have as many each, or one less.
struct RankPart {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
inline RankPart part_of_rank(int64_t count, int64_t rank, int64_t ranks) {
  return {count * rank / ranks, count * (rank + 1) / ranks};
}
inline RankPart own_part(int64_t count, const runtime::Ranks& ranks) {
  return part_of_rank(count, ranks.rank(), ranks.size());
}

// The answers of all ranks, in the order of ranks, on all of them; nothing where any rank has
// nothing. All must call it.
std::optional<std::vector<LearnedAnswer>> answers_of_all(
    std::optional<std::vector<LearnedAnswer>> own, const runtime::Ranks& ranks);

// Prompts are read before answers go on. Where ranks would run the same program, the one for the
// most tokens runs, so that each makes progress.
engine::AgreeOnTurn turns_of(const runtime::Ranks& ranks);

}  // namespace snug::train
