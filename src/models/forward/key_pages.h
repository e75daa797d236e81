// How many pages of keys and values a sequence needs in a group of layers (key_groups.h): what
// pools are planned for, and what the engine admits by.
//
// Pure functions.
#pragma once

#include <cstdint>

namespace snug::models {

// The first position that a query at `position`, or a later one, sees. `window`: it sees its own
// token and window - 1 before it; 0: all before it.
constexpr int64_t first_seen(int64_t position, int64_t window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

constexpr int64_t pages_of(int64_t tokens, int64_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

// How a sequence grows: its prompt in chunks, then few tokens at a time.
struct SequenceGrowth {
  int64_t prompt_tokens = 0;  // after a preemption: with the answer so far
  int64_t tokens = 0;         // at its end; an answer's last token has no keys and counts not
};

// The sizes that pages and chunks have in a job.
struct PageSizes {
  int64_t page_tokens = 0;
  int64_t chunk_tokens = 0;   // of a prompt that is read at once, at most
  int64_t answer_tokens = 1;  // of an answer that are appended at once, at most
};

// The most pages that a sequence holds at any moment in a group with this window, however its
// chunks lie. In a window the page at each end may hold a single token that is needed.
int64_t most_pages(int64_t window, const PageSizes& sizes, const SequenceGrowth& growth);

}  // namespace snug::models
