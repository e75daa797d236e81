// Texts as the ids that a model reads and the ids that are scored, cut as lm-evaluation-harness and
// transformers cut them. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

// Of `ids` the last `scored` are scored, each given all before it. At least one id comes before
// them.
struct ScoredIds {
  std::vector<int32_t> ids;
  int64_t scored = 0;
  bool is_cut = false;  // the beginning was left out

  std::span<const int32_t> read() const { return std::span(ids).first(ids.size() - 1); }
  std::span<const int32_t> targets() const {
    return std::span(ids).last(static_cast<size_t>(scored));
  }
};

// A continuation after its context: both are encoded as one text, which is cut where the context's
// own ids end; white space at the context's end belongs to the continuation. After an empty context
// comes BOS, or else EOS. Of what is longer than `window` + 1 the beginning is left out. Throws
// UserError where nothing is left to score, or more than `window` ids.
ScoredIds continuation_ids(const text::Tokenizer& tokenizer, std::string context,
                           std::string continuation, int64_t window);

// A whole text in windows that do not overlap, of which all ids are scored: the first after BOS (or
// else EOS), the others after as many ids before them as still fit, at least one.
std::vector<ScoredIds> rolling_windows(const text::Tokenizer& tokenizer, const std::string& text,
                                       int64_t window);

// The windows of transformers' guide "Perplexity of fixed-length models": each begins `stride` ids
// after the one before, and scores the ids that none before it has scored. The text's first id is
// not scored.
std::vector<ScoredIds> strided_windows(std::span<const int32_t> ids, int64_t window,
                                       int64_t stride);

// The ids of a text before which nothing comes, or of one that begins with BOS itself.
std::vector<int32_t> text_ids(const text::Tokenizer& tokenizer, const std::string& text);

}  // namespace snug::generate
