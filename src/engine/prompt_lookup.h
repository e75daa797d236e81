// Guesses of the next tokens of a text from the text itself: what followed when its last tokens
// stood there before. Answers that repeat their prompt (a correction, a summary, code) are guessed
// well, others hardly ever. This is what transformers' prompt_lookup_num_tokens does, except that
// it takes the first occurrence where this takes the latest one. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "engine/request.h"

namespace snug::engine {

// Exactly `most` ids, or none: those that followed the latest earlier occurrence of the last
// kMostAlike tokens, else of fewer, at least kLeastAlike. Where the text ends before, it is
// taken to go on as it is guessed, so that a period goes on.
inline constexpr size_t kMostAlike = 3;
inline constexpr size_t kLeastAlike = 2;
Ids looked_up(std::span<const int32_t> text, int64_t most);

}  // namespace snug::engine
