// A group of layers that keep alike, and how many pages a sequence needs in it. Layers of a group
// share one table of pages: those that see every token before a query are one group, those of each
// window another.
//
// Pure functions.
#pragma once

#include <cstdint>

namespace snug::engine {

struct PageGroup {
  int64_t pages = 0;   // in the group's pool
  int64_t window = 0;  // a query sees its own token and window - 1 before it; 0: all before it
};

// The first position that a query at `position`, or a later one, sees.
constexpr int64_t first_seen(int64_t position, int64_t window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

constexpr int64_t pages_of(int64_t tokens, int64_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

// How a sequence grows: its prompt in chunks, then one token at a time.
struct SequenceGrowth {
  int64_t prompt_tokens = 0;  // after a preemption: with the answer so far
  int64_t tokens = 0;         // at its end; an answer's last token has no keys and counts not
};

// The most pages that a sequence holds in a group at any moment, however its chunks of at most
// `chunk_tokens` lie. In a window the page at each end may hold a single token that is needed.
int64_t most_pages(const PageGroup& group, int64_t page_tokens, int64_t chunk_tokens,
                   const SequenceGrowth& growth);

}  // namespace snug::engine
